internal import ArgumentParser

/// A time as an argument: `10`, `10s`, `500ms` or `2m`.
struct LoadDuration: Sendable, Hashable {
  let seconds: Double

  init(seconds: Double) { self.seconds = seconds }

  init(parsing argument: String) throws(ValidationError) {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("", 1.0)]
    guard let (suffix, scale) = units.first(where: { argument.hasSuffix($0.0) }),
      let number = Double(argument.dropLast(suffix.count)), number > 0, number * scale <= 86400
    else { throw ValidationError("a time is a number and ms, s or m, like 10s, and at most a day") }
    seconds = number * scale
  }

  var duration: Duration { .seconds(seconds) }
  var nanoseconds: UInt64 { UInt64(seconds * 1e9) }
}

/// A number of bytes as an argument: `64`, `16KiB` or `1MiB`.
struct ByteCount: Sendable, Hashable {
  let bytes: Int

  init(_ bytes: Int) { self.bytes = bytes }

  init(parsing argument: String) throws(ValidationError) {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("B", 1), ("", 1)]
    guard let (suffix, scale) = units.first(where: { argument.hasSuffix($0.0) }),
      let number = Int(argument.dropLast(suffix.count)), (0...(64 << 20) / scale).contains(number)
    else { throw ValidationError("a size is a whole number and B, KiB or MiB, like 16KiB, and at most 64MiB") }
    bytes = number * scale
  }
}

/// The kind of load.
enum LoadMode: Sendable, Hashable {
  /// Each socket sends a message when the previous one has come back, at most `limit` of them; `nil` for no limit.
  case pingPong(limit: Int?)
  /// Messages are sent at a rate, independently of their return.
  case rate(Double)
  /// Connections that are opened, upgraded and closed.
  case connections
  /// New devices that register.
  case registrations
  /// Open sockets without traffic.
  case idle
  /// Sockets that send and do not read.
  case stall
  /// Sockets that all end at one moment, and whose devices come back at once, at most `atOnce` of them at the same time.
  case storm(backsOff: Bool, atOnce: Int)

  var name: String {
    switch self {
    case .pingPong: "ping-pong"
    case .rate: "rate"
    case .connections: "connect"
    case .registrations: "register"
    case .idle: "idle"
    case .stall: "stall"
    case .storm: "storm"
    }
  }

  /// The unit that is counted.
  var unit: String {
    switch self {
    case .pingPong, .rate, .idle, .stall: "messages"
    case .connections: "connections"
    case .storm: "devices"
    case .registrations: "registrations"
    }
  }
}

internal import ByteCoding
internal import Glibc

/// A folder with the messages that the receiver does not have yet, one file each. A message that is in it survives the
/// process and a power failure.
///
/// Several processes may write to one folder, such as the old and the new one of a graceful upgrade; one of them sends.
/// Calls block.
public struct WebhookSpool: Sendable {
  /// A system call that failed.
  public struct Fault: Error, Sendable, Hashable, CustomStringConvertible {
    /// The file or folder.
    public let place: String
    /// errno(3).
    public let number: Int32

    public var description: String { "\(place): \(String(cString: strerror(number)))" }

    fileprivate static func last(_ place: String) -> Fault { Fault(place: place, number: errno) }
  }

  /// The largest body of a message in bytes; a larger file is not one of ours.
  static let largestBody = 64 << 10
  /// How old a draft is whose writer must be gone.
  private static let abandonedAfter = Duration.seconds(600)

  /// The folder, for messages to the operator.
  public let folder: String
  private var waitingFolder: String { folder + "/waiting" }
  private var draftsFolder: String { folder + "/drafts" }
  private let flush: @Sendable (_ folder: String) throws(Fault) -> Void

  /// Makes the folder and those in it, with mode 0700, if they are missing.
  public init(_ folder: String) throws(Fault) { try self.init(folder, flush: Self.flushed) }

  /// - Parameter flush: Makes the names in a folder durable. Tests replace it.
  init(_ folder: String, flush: @escaping @Sendable (_ folder: String) throws(Fault) -> Void) throws(Fault) {
    self.folder = folder
    self.flush = flush
    for place in [folder, waitingFolder, draftsFolder] {
      guard mkdir(place, 0o700) == 0 || errno == EEXIST else { throw .last(place) }
      guard access(place + "/.", R_OK | W_OK | X_OK) == 0 else { throw .last(place) }
    }
  }

  // MARK: Writing

  /// Writes `message` to the folder and makes it durable.
  ///
  /// After a failed flush of the folder, the message is in the folder and will be sent. Its removal would lose it for
  /// certain. So this is no error, and `doubt` has the reason why a power failure can lose the message.
  ///
  /// - Throws: `Fault` if the message is not in the folder.
  func write(_ message: WebhookMessage) throws(Fault) -> (ticket: WebhookTicket?, doubt: Fault?) {
    let name = Self.name(of: message)
    let draft = "\(draftsFolder)/\(name)"
    do throws(Fault) {
      try Self.make(draft, message.body)
      guard rename(draft, "\(waitingFolder)/\(name)") == 0 else { throw .last(waitingFolder) }
    } catch {
      unlink(draft)
      throw error
    }
    var doubt: Fault?
    do throws(Fault) { try flush(waitingFolder) } catch { doubt = error }
    return (WebhookTicket(name: name), doubt)
  }

  /// Forgets a message.
  func remove(_ ticket: WebhookTicket) throws(Fault) {
    let place = "\(waitingFolder)/\(ticket.name)"
    guard unlink(place) == 0 || errno == ENOENT else { throw .last(place) }
  }

  private static func make(_ place: String, _ bytes: [UInt8]) throws(Fault) {
    let file = open(place, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard file >= 0 else { throw .last(place) }
    defer { close(file) }
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw .last(place) }
      rest = rest.dropFirst(count)
    }
    guard fsync(file) == 0 else { throw .last(place) }
  }

  private static func flushed(_ folder: String) throws(Fault) {
    let descriptor = open(folder, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .last(folder) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw .last(folder) }
  }

  // MARK: Reading

  /// The identifiers of the messages, the oldest first.
  func waiting() throws(Fault) -> [WebhookTicket] {
    try Self.names(in: waitingFolder).compactMap(WebhookTicket.init(name:)).sorted()
  }

  /// What a file contains.
  enum Content: Sendable, Hashable {
    case message(WebhookMessage)
    /// Another process has sent it, or removed it.
    case gone
    /// It is not a file that `write` made.
    case foreign
  }

  /// The message of a ticket.
  ///
  /// - Throws: `Fault` if the file cannot be read now.
  func content(of ticket: WebhookTicket) throws(Fault) -> Content {
    let place = "\(waitingFolder)/\(ticket.name)"
    let file = open(place, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard file >= 0 else {
      switch errno {
      case ENOENT: return .gone
      case ELOOP, ENXIO: return .foreign
      default: throw .last(place)
      }
    }
    defer { close(file) }
    var body: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 16 << 10)
    while body.count <= Self.largestBody {
      let count = read(file, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else {
        if errno == EISDIR { return .foreign }
        throw .last(place)
      }
      if count == 0 { break }
      body += buffer[..<count]
    }
    guard !body.isEmpty, body.count <= Self.largestBody else { return .foreign }
    return .message(WebhookMessage(id: ticket.id, instant: ticket.instant, body: body))
  }

  private static func names(in folder: String) throws(Fault) -> [String] {
    guard let entries = opendir(folder) else { throw .last(folder) }
    defer { closedir(entries) }
    var names: [String] = []
    while let entry = readdir(entries) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if !name.hasPrefix(".") { names.append(name) }
    }
    return names
  }

  fileprivate static func name(of message: WebhookMessage) -> String {
    let milliseconds = String(max(0, message.instant.milliseconds))
    return String(repeating: "0", count: max(0, 15 - milliseconds.count)) + milliseconds + "." + message.id
  }

  // MARK: One sender

  /// Returns a lock that lets this process alone send what is in the folder, until it is released or the process ends;
  /// `nil` while another process has it. Drafts of processes that are gone are removed.
  func lock(at now: Timestamp) throws(Fault) -> WebhookLock? {
    let place = folder + "/lock"
    let descriptor = open(place, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw .last(place) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let fault = Fault.last(place)
      close(descriptor)
      guard fault.number == EWOULDBLOCK else { throw fault }
      return nil
    }
    let lock = WebhookLock(descriptor)
    for name in try Self.names(in: draftsFolder) {
      guard let ticket = WebhookTicket(name: name), now.since(ticket.instant) > Self.abandonedAfter else { continue }
      unlink("\(draftsFolder)/\(name)")
    }
    return lock
  }
}

/// The name of a message's file: its time and its identifier, so that names in order are messages in order.
struct WebhookTicket: Sendable, Hashable, Comparable {
  let name: String
  let instant: Timestamp
  let id: String

  /// `nil` for a name that no message has.
  init?(name: String) {
    let parts = name.utf8.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0].count == 15, let milliseconds = Int64(Substring(parts[0])), milliseconds >= 0,
      (1...64).contains(parts[1].count), parts[1].allSatisfy({ $0.isWordByte })
    else { return nil }
    self.name = name
    instant = Timestamp(milliseconds: milliseconds)
    id = String(Substring(parts[1]))
  }

  static func < (first: WebhookTicket, second: WebhookTicket) -> Bool {
    first.name.utf8.lexicographicallyPrecedes(second.name.utf8)
  }
}

extension UInt8 {
  /// A letter or digit of ASCII, `_` or `-`.
  fileprivate var isWordByte: Bool {
    switch self {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
      true
    default: false
    }
  }
}

/// The right to send what is in a folder. It ends with the last reference.
final class WebhookLock: Sendable {
  private let descriptor: Int32

  fileprivate init(_ descriptor: Int32) { self.descriptor = descriptor }

  deinit { close(descriptor) }
}

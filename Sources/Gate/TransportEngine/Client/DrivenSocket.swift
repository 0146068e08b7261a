internal import Glibc
internal import Transport

/// Works with many WebSockets on their loop's own thread, with no task in between: for programs that make load.
///
/// The methods are called on the engine's loop, one at a time, and must not block. What a driver keeps is touched by
/// that thread alone.
public protocol SocketDriver: AnyObject, Sendable {
  /// The socket is handed over.
  func started(_ socket: DrivenSocket)
  /// A part of a message, valid during the call.
  func received(_ payload: UnsafeRawBufferPointer, on socket: DrivenSocket)
  /// The message whose parts came before is complete.
  func messageEnded(on socket: DrivenSocket)
  /// All that was sent before is with the kernel.
  func drained(_ socket: DrivenSocket)
  /// Nothing more will come or go. Called once.
  func ended(_ socket: DrivenSocket, because reason: String)
}

extension SocketDriver {
  public func drained(_ socket: DrivenSocket) {}
}

/// A WebSocket frame as a client sends it, made once and sent any number of times.
///
/// The mask is the same each time. RFC 6455 section 5.3 requires a fresh one, to protect intermediaries that
/// interpret the bytes; a load generator sends no secrets and has no one to attack.
public struct PreparedFrame: Sendable {
  let bytes: [UInt8]

  /// A whole binary message of `payload`.
  public init(message payload: [UInt8]) {
    let mask = MaskingKey(.random(in: .min ... .max))
    let header = FrameHeader(.binary, payloadLength: payload.count, mask: mask)
    var bytes: [UInt8] = []
    header.append(to: &bytes)
    bytes += payload
    bytes.withUnsafeMutableBytes { mask.apply(to: UnsafeMutableRawBufferPointer(rebasing: $0[header.length...])) }
    self.bytes = bytes
  }
}

/// A WebSocket in the hands of a driver.
///
/// `@unchecked Sendable`: its loop's thread alone touches it; a driver must not hand it to another.
public final class DrivenSocket: @unchecked Sendable {
  /// The number that the driver's owner gave it.
  public let number: Int
  /// Whether what the server sends is read.
  public private(set) var isReading = true
  private let driver: any SocketDriver
  // The channel owns this object and outlives it; the loop outlives the channel.
  private unowned let channel: ClientChannel
  private unowned let loop: EventLoop
  private var frames = FrameReader()
  private var frame: FrameHeader?
  private var control: [UInt8] = []
  private var hasEnded = false

  init(_ number: Int, driver: any SocketDriver, channel: ClientChannel, loop: EventLoop) {
    self.number = number
    self.driver = driver
    self.channel = channel
    self.loop = loop
  }

  /// `true` if nothing waits to be written.
  public var isDrained: Bool { channel.link.outbox.isEmpty }

  /// Sends `frame`; what the kernel does not take waits, and grows if more is sent.
  public func send(_ frame: PreparedFrame) {
    frame.bytes.withUnsafeBytes { channel.transmit($0, in: loop) }
  }

  /// Reads nothing more, so that the server has to wait.
  public func stopReading() {
    isReading = false
    channel.update(in: loop)
  }

  func start() { driver.started(self) }
  func drained() { if !hasEnded { driver.drained(self) } }

  func lost(_ reason: String) {
    guard !hasEnded else { return }
    hasEnded = true
    driver.ended(self, because: reason)
  }

  func receive(_ bytes: UnsafeRawBufferPointer) {
    var window = bytes
    do throws(FrameFault) {
      while !hasEnded, let piece = try frames.next(&window) { take(piece) }
    } catch {
      channel.end(.malformed(error.rawValue), in: loop)
    }
  }

  private func take(_ piece: FramePiece) {
    switch piece {
    case .begin(let header):
      frame = header
    case .payload(let bytes, _):
      if frame?.opcode.isControl == true {
        control.append(contentsOf: bytes)
      } else {
        driver.received(bytes, on: self)
      }
    case .end:
      guard let frame else { return }
      if frame.opcode.isControl { controlEnded(frame.opcode) } else if frame.isFinal { driver.messageEnded(on: self) }
    }
  }

  private func controlEnded(_ opcode: Opcode) {
    let payload = control
    control = []
    switch opcode {
    case .ping:
      let pong = FrameHeader(.pong, payloadLength: payload.count, mask: MaskingKey(0))
      var bytes: [UInt8] = []
      pong.append(to: &bytes)
      bytes += payload
      channel.transmit(bytes, in: loop)
    case .close:
      let code = (try? ClosePayload(decoding: payload))?.code?.rawValue
      channel.end(.lost("the server closed the socket" + (code.map { " with \($0)" } ?? "")), in: loop)
    case .pong, .continuation, .text, .binary:
      break
    }
  }
}

extension ClientWebSocket {
  /// Hands the socket to `driver`: from now on neither `send` nor `receive` may be called. The socket closes, as ever,
  /// when the last reference to it is gone.
  ///
  /// - Parameter number: for the driver, to tell its sockets apart.
  public func hand(to driver: any SocketDriver, as number: Int) async throws(ClientFault) {
    try await connection.perform { (channel, loop, done: @escaping ClientChannel.Callback<Void>) in
      guard channel.phase == .webSocket, channel.driven == nil else {
        done(.failure(.lost("the WebSocket is closed")))
        return
      }
      let socket = DrivenSocket(number, driver: driver, channel: channel, loop: loop)
      channel.driven = socket
      socket.start()
      done(.success(()))
    }
  }
}

internal import Glibc
internal import Transport

/// Handles many WebSockets on their loop's own thread, without tasks in between: for load generators.
///
/// The methods are called on the engine's loop, one at a time, and must not block. Only that thread
/// touches the state of a driver.
public protocol SocketDriver: AnyObject, Sendable {
  /// Receives the socket.
  func started(_ socket: DrivenSocket)
  /// Receives a part of a message. `payload` is valid during the call only.
  func received(_ payload: UnsafeRawBufferPointer, on socket: DrivenSocket)
  /// Reports that the message of the previous parts is complete.
  func messageEnded(on socket: DrivenSocket)
  /// Reports that the kernel has taken all bytes sent so far.
  func drained(_ socket: DrivenSocket)
  /// Reports that nothing more will be received or sent. Called once.
  func ended(_ socket: DrivenSocket, because reason: String)
}

extension SocketDriver {
  public func drained(_ socket: DrivenSocket) {}
}

/// A masked WebSocket frame of a client, encoded once and sent any number of times.
///
/// The mask is the same each time. RFC 6455 section 5.3 requires a fresh one to protect intermediaries from payloads
/// that an attacker chose; a load generator sends its own payloads only.
public struct PreparedFrame: Sendable {
  let bytes: [UInt8]

  /// Encodes a whole binary message of `payload`.
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

/// A WebSocket that a driver controls.
///
/// `@unchecked Sendable`: only its loop's thread touches it; a driver must not pass it to another thread.
public final class DrivenSocket: @unchecked Sendable {
  /// The number that the owner of the driver assigned.
  public let number: Int
  /// Whether data from the server is read.
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

  /// Whether no bytes are waiting to be written.
  public var isDrained: Bool { channel.socket.outbox.isEmpty }

  /// Sends `frame`. Bytes that the kernel does not take are queued without a limit.
  public func send(_ frame: PreparedFrame) {
    frame.bytes.withUnsafeBytes { channel.transmit($0, in: loop) }
  }

  /// Stops reading, so that the server has to wait.
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
    var buffers = bytes
    do throws(FrameError) {
      while !hasEnded, let piece = try frames.next(&buffers) { take(piece) }
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
  /// Hands the socket to `driver`. Neither `send` nor `receive` may be called afterwards. The socket still closes
  /// when the last reference to it is released.
  ///
  /// - Parameter number: Identifies the socket for the driver.
  /// - Throws: `ClientError.lost` if the WebSocket is closed or already has a driver.
  public func hand(to driver: any SocketDriver, as number: Int) async throws(ClientError) {
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

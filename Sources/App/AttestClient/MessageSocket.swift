internal import ByteCoding
internal import Foundation
public import Wire

/// An open WebSocket whose messages are texts.
public protocol MessageSocket: Sendable {
  /// Sends one message. Calls from several tasks are safe.
  func send(_ text: String) async throws(SocketError)

  /// Waits for the next message. Only one call at a time is allowed.
  func receive() async throws(SocketError) -> String

  /// Closes the socket. A waiting `receive` throws. Nothing happens if the socket is closed already.
  func close() async
}

/// Opens WebSockets.
///
/// An implementation verifies the server's certificate and name, and follows no redirects.
public protocol WebSocketTransport: Sendable {
  /// Opens the WebSocket at the `wss` URL of `request` and returns after the server's 101.
  ///
  /// The header fields of `request` are part of the opening handshake; its method is GET and its body is empty.
  func openWebSocket(_ request: HTTPRequest) async throws(UpgradeError) -> any MessageSocket
}

/// Why a socket has no next message.
public enum SocketError: Error, Sendable, Hashable {
  /// The other end, the gate or the server behind it, closed the socket.
  case closed(SocketClosure)
  /// The connection broke, as a text for people.
  case lost(String)
  /// The other end sent what this client does not accept, as a text for people.
  case malformed(String)
}

/// The Close frame of the other end (RFC 6455 section 5.5.1). Its text cannot steer a terminal.
public struct SocketClosure: Sendable, Hashable {
  /// The code; `nil` without one.
  public let code: UInt16?
  /// The reason, for people; empty without one.
  public let reason: String

  /// Describes a Close frame.
  public init(code: UInt16?, reason: String) {
    self.code = code
    self.reason = TerminalText.printable(reason)
  }

  /// The next step for the app. Codes of the gate are those of its document on refusals; the others are those of
  /// RFC 6455 section 7.4.1.
  public var advice: GateRefusalCode.Advice {
    switch code {
    case 3003: .stop
    // 1008: the gate has closed the oldest of too many sockets. To open another would close the next one.
    case 1002, 1003, 1007, 1008, 1009, 1010: .fixRequest
    default: .retryLater
    }
  }
}

extension SocketError {
  /// The next step for the app: another socket later, or none.
  public var advice: GateRefusalCode.Advice {
    switch self {
    case .closed(let closure): closure.advice
    case .lost: .retryLater
    case .malformed: .stop
    }
  }
}

extension SocketError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .closed(let closure):
      "the socket was closed" + (closure.code.map { " with \($0)" } ?? "")
        + (closure.reason.isEmpty ? "" : ": \(closure.reason)")
    case .lost(let reason): "the socket was lost: \(reason)"
    case .malformed(let reason): "the socket's messages are malformed: \(reason)"
    }
  }
}

extension AttestSession {
  /// Opens the WebSocket of `request`, a `wss` URL of this session's gate, with an assertion.
  ///
  /// Registers first if necessary. The session adds the three header fields of the assertion to those of the request,
  /// which may carry an authorization or a subprotocol. Refusals are handled as in `open`.
  ///
  /// - Throws: `.unusableAddress` if the URL is not the gate's; otherwise what `open` throws.
  public func openWebSocket(
    _ request: HTTPRequest, by transport: any WebSocketTransport
  ) async throws(AttestError) -> any MessageSocket {
    guard gate.serves(socket: request.url) else { throw .unusableAddress(request.url.absoluteString) }
    return try await open { headers throws(UpgradeError) in
      var request = request
      request.headers += headers.fields
      return try await transport.openWebSocket(request)
    }
  }
}

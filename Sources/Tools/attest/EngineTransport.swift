internal import AttestClient
internal import Commands
internal import Foundation
internal import Transport
internal import TransportEngine

/// The registration protocol over the engine's client: TLS against the authority that was named, or the system's.
struct EngineTransport: HTTPTransport {
  let engine: ClientEngine
  let tls: ClientTLS

  func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPResponse {
    let address: GateURL
    do throws(Failure) {
      address = try GateURL(request.url.absoluteString)
    } catch {
      throw .unreachable(error.message)
    }
    let connection = try await open(address)
    var headers = HeaderFields()
    headers.append("Host", address.hostField)
    for field in request.headers { headers.append(field.name, field.value) }
    do throws(ClientError) {
      let response = try await connection.send(
        request.method.rawValue, address.target, headers: headers, body: request.body)
      return HTTPResponse(response)
    } catch {
      throw TransportError(error)
    }
  }

  /// Opens a connection with TLS. If this throws, nothing was sent.
  ///
  /// - Parameter source: The IPv4 address of this machine to connect from; `nil` for the system's choice.
  func open(_ address: GateURL, from source: [UInt8]? = nil) async throws(TransportError) -> ClientConnection {
    do throws(ClientError) {
      return try await engine.connect(host: address.host, port: address.port, tls: tls, from: source)
    } catch {
      switch error {
      case .untrusted(let reason): throw .untrusted(reason)
      case .unreachable, .timedOut, .lost, .malformed, .tooLong, .refused, .misused: throw .unreachable("\(error)")
      }
    }
  }

  /// An upgraded connection.
  func openWebSocket(
    _ address: GateURL, headers: HeaderFields, subprotocols: [String] = []
  ) async throws(UpgradeError) -> ClientWebSocket {
    let connection: ClientConnection
    do throws(TransportError) { connection = try await open(address) } catch { throw .transport(error) }
    do throws(ClientError) {
      return try await connection.upgrade(
        address.target, host: address.hostField, headers: headers, subprotocols: subprotocols)
    } catch .refused(let response) {
      throw .refused(GateRefusal(HTTPResponse(response)))
    } catch {
      throw .transport(TransportError(error))
    }
  }
}

extension EngineTransport: WebSocketTransport {
  func openWebSocket(_ request: HTTPRequest) async throws(UpgradeError) -> any MessageSocket {
    let address: GateURL
    do throws(Failure) {
      address = try GateURL(request.url.absoluteString)
    } catch {
      throw .transport(.unreachable(error.message))
    }
    var headers = HeaderFields()
    var subprotocols: [String] = []
    for field in request.headers {
      // The engine writes this field itself, to compare it with the answer.
      if field.name.lowercased() == "sec-websocket-protocol" {
        subprotocols += field.value.split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } }
      } else {
        headers.append(field.name, field.value)
      }
    }
    return EngineSocket(socket: try await openWebSocket(address, headers: headers, subprotocols: subprotocols))
  }
}

/// An open WebSocket of the engine's client.
private struct EngineSocket: MessageSocket {
  let socket: ClientWebSocket

  func send(_ text: String) async throws(SocketError) {
    do throws(ClientError) { try await socket.send(.text(text)) } catch { throw .lost("\(error)") }
  }

  func receive() async throws(SocketError) -> String {
    let event: ClientWebSocket.Event
    do throws(ClientError) { event = try await socket.receive() } catch { throw .lost("\(error)") }
    switch event {
    case .message(.text(let text)): return text
    case .message(.binary): throw .malformed("a binary message")
    case .ended(let ending): throw .closed(SocketClosure(code: ending.code, reason: ending.reason))
    }
  }

  func close() async { await socket.close() }
}

extension HTTPResponse {
  init(_ response: Response) {
    self.init(
      status: response.status, headers: response.headers.fields.map { HTTPField($0.name, $0.value) },
      body: response.body)
  }
}

extension TransportError {
  /// Translates a fault of an open connection. The request may have been processed.
  init(_ fault: ClientError) {
    switch fault {
    case .unreachable(let reason): self = .unreachable(reason)
    case .untrusted(let reason): self = .untrusted(reason)
    case .timedOut, .lost: self = .lost("\(fault)")
    case .malformed, .tooLong, .misused, .refused: self = .malformed("\(fault)")
    }
  }
}

internal import AttestClient
internal import ByteCoding
internal import Commands
internal import SimulatedDevice
internal import Transport
internal import TransportEngine

/// The server under load, and how one gets in.
struct LoadTarget: Sendable {
  let engine: ClientEngine
  let tls: ClientTLS
  let address: GateURL
  /// Whose devices connect; `nil` to connect without any.
  let authority: TestAuthority?
  /// The kind of the devices.
  let model: Device.Model?

  /// How many connections one address of this machine has at a time: its ports are limited.
  private static let connectionsOfAddress = 20_000

  /// - Parameter number: That of the connection among all; many of them to a gate of this machine come from several of
  ///   its addresses.
  func connect(number: Int = 0) async throws(Failure) -> ClientConnection {
    let block = number / Self.connectionsOfAddress
    let isLocal = address.host == "localhost" || address.host == "127.0.0.1"
    do throws(TransportError) {
      return try await EngineTransport(engine: engine, tls: tls)
        .open(address, from: isLocal && block > 0 ? [127, 0, 0, UInt8(min(block + 1, 250))] : nil)
    } catch {
      throw Failure(error)
    }
  }

  /// An open socket: connection, TLS and upgrade, with a fresh assertion if there is a device to make it.
  func open(as device: LoadDevice?) async throws(Failure) -> ClientWebSocket {
    do throws(LoadError) { return try await open(as: device, number: 0) } catch { throw error.failure }
  }

  /// The same as connection `number` of all.
  func open(as device: LoadDevice?, number: Int) async throws(LoadError) -> ClientWebSocket {
    let connection: ClientConnection
    do throws(Failure) { connection = try await connect(number: number) } catch { throw LoadError(error) }
    let headers = try await device?.assertionHeaders(over: connection, to: address) ?? HeaderFields()
    do throws(ClientError) {
      return try await connection.upgrade(address.target, host: address.hostField, headers: headers)
    } catch .refused(let response) {
      let refusal = GateRefusal(HTTPResponse(response))
      throw LoadError(Failure(.assertionFailed(refusal)), retryAfter: refusal.retryAfter)
    } catch {
      throw LoadError(Failure(TransportError(error)))
    }
  }

  /// A new device of the authority, registered; `nil` without an authority.
  func makeDevice(number: Int = 0) async throws(Failure) -> LoadDevice? {
    guard let authority, let model else { return nil }
    return try await LoadDevice(model, authority: authority, registeredOver: connect(number: number), to: address)
  }
}

/// Why a socket did not open.
struct LoadError: Error, Sendable {
  let failure: Failure
  /// How long the gate asks the device to wait; `nil` if it does not say so.
  let retryAfter: Duration?

  init(_ failure: Failure, retryAfter: Duration? = nil) { (self.failure, self.retryAfter) = (failure, retryAfter) }
}

/// A simulated device with one key, in memory.
///
/// Its requests to the gate use one connection, as in apps. Its assertions must be used one after another.
struct LoadDevice: Sendable {
  private let keys: any DeviceKeyService
  private let keyID: String

  init(
    _ model: Device.Model, authority: TestAuthority, registeredOver connection: ClientConnection, to address: GateURL
  ) async throws(Failure) {
    keys = try authority.keyService(of: model, keys: MemoryKeyStore())
    let challenge: Challenge
    do throws(LoadError) {
      challenge = try await Self.challenge(over: connection, to: address)
    } catch {
      throw error.failure
    }
    let body: [UInt8]
    do throws(KeyServiceError) {
      keyID = try await keys.generateKey()
      body = try await keys.registration(of: keyID, over: challenge)
    } catch {
      throw Failure(error)
    }
    let response = try await Self.ask("POST", "/attest/register", body, over: connection, to: address)
    guard response.status == 200 else {
      throw Failure(.registrationFailed(GateRefusal(HTTPResponse(response))), of: model.platform)
    }
  }

  /// Returns the fields that open one socket, for a challenge that is fetched on the same connection.
  func assertionHeaders(
    over connection: ClientConnection, to address: GateURL
  ) async throws(LoadError) -> HeaderFields {
    let challenge = try await Self.challenge(over: connection, to: address)
    let assertion: [UInt8]
    do throws(KeyServiceError) {
      assertion = try await keys.proof(by: keyID, over: challenge)
    } catch {
      throw LoadError(Failure(error))
    }
    let headers = AssertionHeaders(keyID: keyID, assertion: assertion, challenge: challenge)
    return HeaderFields(headers.fields.map { HeaderFields.Field(name: $0.name, value: $0.value) })
  }

  private static func challenge(
    over connection: ClientConnection, to address: GateURL
  ) async throws(LoadError) -> Challenge {
    let response: Response
    do throws(Failure) {
      response = try await ask("GET", "/attest/challenge", over: connection, to: address)
    } catch {
      throw LoadError(error)
    }
    guard response.status == 200 else {
      let refusal = GateRefusal(HTTPResponse(response))
      throw LoadError(Failure(.challengeFailed(refusal)), retryAfter: refusal.retryAfter)
    }
    guard let challenge = Challenge(body: response.body) else { throw LoadError(Failure(.missingNonce)) }
    return challenge
  }

  private static func ask(
    _ method: String, _ target: String, _ body: [UInt8] = [], over connection: ClientConnection, to address: GateURL
  ) async throws(Failure) -> Response {
    var headers = HeaderFields()
    headers.append("Host", address.hostField)
    if !body.isEmpty { headers.append("Content-Type", "application/json") }
    do throws(ClientError) {
      return try await connection.send(method, target, headers: headers, body: body)
    } catch {
      throw Failure(TransportError(error))
    }
  }
}

internal import ArgumentParser
internal import AttestClient
internal import ByteCoding
internal import Commands
internal import Foundation
internal import MFAClient
internal import SimulatedDevice
internal import TransportEngine

/// How requests reach the backend.
enum LabWay: String, CaseIterable, Sendable, ExpressibleByArgument {
  case rest
  case socket
}

/// A gate with an MFA backend behind it, and new simulated devices that use it.
struct LabGate: Sendable {
  let address: GateURL
  private let authority: TestAuthority
  private let platform: Platform
  private let transport: EngineTransport

  init(_ options: GlobalOptions, url: String) throws(Failure) {
    address = try GateURL(url)
    let options = options.forGate(at: address)
    authority = try options.loadAuthority()
    platform = options.platform ?? .ios
    transport = EngineTransport(engine: try DeviceSession.makeEngine(), tls: try options.makeTLS())
  }

  /// The backend for an app on a new device, whose key is lost at the end of the process.
  func makeBackend(by way: LabWay) throws(Failure) -> any MFABackend {
    let device = Device(name: "lab", on: platform, authority: authority, createdAt: .now())
    let keys = try authority.keyService(of: device.model, keys: MemoryKeyStore())
    let (gate, session): (URL, AttestSession)
    gate = try Self.url("https", address, "/")
    do throws(AttestError) {
      session = try AttestSession(
        gate: gate, deviceKeys: keys, store: MemoryKeyIDStore(), http: transport)
    } catch {
      throw Failure(error)
    }
    return try Self.backend(by: way, session, transport, at: address)
  }

  /// The backend behind the gate at `address`, whose API is at `/api/v1` unless the address has a path.
  static func backend(
    by way: LabWay, _ session: AttestSession, _ transport: EngineTransport, at address: GateURL
  ) throws(Failure) -> any MFABackend {
    let path = address.target == "/" ? "/api/v1" : address.target
    switch way {
    case .rest: return NetworkService(session: session, base: try url("https", address, path))
    case .socket:
      return SocketService(session: session, url: try url("wss", address, path + "/socket"), transport: transport)
    }
  }

  private static func url(_ scheme: String, _ address: GateURL, _ path: String) throws(Failure) -> URL {
    guard let url = URL(string: "\(scheme)://\(address.hostField)\(path)") else {
      throw Failure(.usage, "not the address of a gate: \(address.hostField)\(path)")
    }
    return url
  }
}

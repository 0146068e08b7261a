internal import AttestClient
public import Foundation
public import SimulatedDevice
internal import Locking

/// The part of DeviceCheck that the guide uses, based on a simulated device.
public final class DCAppAttestService: Sendable {
  public static let shared = DCAppAttestService()

  private struct Simulation {
    let keys: SimulatedKeyService
    let attestationDelay: Duration
  }

  private let simulation = LockedValue<Simulation?>(nil)

  /// Sets the simulated device. Before that, every call fails with `KeyServiceError.featureUnsupported`.
  ///
  /// - Parameter attestationDelay: The simulated response time of Apple's servers for an attestation.
  public func simulate(_ keys: SimulatedKeyService, attestationDelay: Duration = .zero) {
    simulation.withLock { $0 = Simulation(keys: keys, attestationDelay: attestationDelay) }
  }

  public func generateKey() async throws -> String {
    try await device().keys.generateKey()
  }

  public func attestKey(_ keyId: String, clientDataHash: Data) async throws -> Data {
    let device = try device()
    let attestation = try await device.keys.attestKey(keyId, clientDataHash: [UInt8](clientDataHash))
    try await Task.sleep(for: device.attestationDelay)
    return Data(attestation)
  }

  public func generateAssertion(_ keyId: String, clientDataHash: Data) async throws -> Data {
    Data(try await device().keys.generateAssertion(keyId, clientDataHash: [UInt8](clientDataHash)))
  }

  private func device() throws -> Simulation {
    guard let device = simulation.withLock({ $0 }) else { throw KeyServiceError.featureUnsupported }
    return device
  }
}

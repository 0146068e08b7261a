#if canImport(DeviceCheck)
  internal import DeviceCheck
  internal import Foundation

  /// The keys of a real device: Apple's `DCAppAttestService`.
  public struct DeviceCheckKeyService: AppAttestKeyService {
    /// Creates a service for the device that the app runs on.
    public init() {}

    /// Whether the device supports App Attest. Simulators and app extensions mostly do not.
    public var isSupported: Bool { DCAppAttestService.shared.isSupported }

    /// Makes a key in the Secure Enclave and returns its identifier in base64.
    public func generateKey() async throws(KeyServiceError) -> String {
      do {
        return try await DCAppAttestService.shared.generateKey()
      } catch {
        throw KeyServiceError(error)
      }
    }

    /// Asks Apple to attest the key. Needs the network, and succeeds once for each key.
    public func attestKey(_ keyID: String, clientDataHash: [UInt8]) async throws(KeyServiceError) -> [UInt8] {
      do {
        return [UInt8](try await DCAppAttestService.shared.attestKey(keyID, clientDataHash: Data(clientDataHash)))
      } catch {
        throw KeyServiceError(error)
      }
    }

    /// Signs with the attested key. Needs no network.
    public func generateAssertion(_ keyID: String, clientDataHash: [UInt8]) async throws(KeyServiceError) -> [UInt8] {
      do {
        let hash = Data(clientDataHash)
        return [UInt8](try await DCAppAttestService.shared.generateAssertion(keyID, clientDataHash: hash))
      } catch {
        throw KeyServiceError(error)
      }
    }
  }

  extension KeyServiceError {
    fileprivate init(_ error: any Error) {
      guard let error = error as? DCError else {
        self = .systemFailure(String(describing: error))
        return
      }
      switch error.code {
      case .invalidKey: self = .invalidKey
      case .invalidInput: self = .invalidInput
      case .featureUnsupported: self = .featureUnsupported
      case .serverUnavailable: self = .serverUnavailable
      case .unknownSystemFailure: self = .systemFailure(error.localizedDescription)
      @unknown default: self = .systemFailure(error.localizedDescription)
      }
    }
  }
#endif

internal import ArgumentParser
internal import AttestClient
internal import Commands
internal import SimulatedDevice

/// The platform of a simulated device.
enum Platform: String, Sendable, Hashable, CaseIterable, Codable, ExpressibleByArgument {
  case ios
  case android

  /// The device that commands use, and make if necessary, unless one is named.
  var defaultDevice: String {
    switch self {
    case .ios: GlobalOptions.defaultDevice
    case .android: "android"
    }
  }
}

extension TestAuthority {
  /// The part that vouches for Android devices.
  func androidAuthority() throws(Failure) -> AndroidAuthority {
    guard let android else {
      throw Failure(
        .badData, "the authority vouches for iOS devices alone: an earlier version made its folder",
        hint: "start `sallyport dev` with this folder again: it adds what vouches for Android devices")
    }
    return android
  }

  /// The keys of a device of this kind in `store`.
  ///
  /// - Parameter name: See `Device.receiptName`; `nil` for a new device.
  func keyService(
    of model: Device.Model, named name: SimulatedDeviceName? = nil, keys store: any SimulatedKeyStore
  ) throws(Failure) -> any DeviceKeyService {
    switch model {
    case .ios(let app): AppAttestKeys(SimulatedKeyService(authority: self, app: app, keys: store, device: name))
    case .android(let profile):
      SimulatedAndroidKeyService(authority: try androidAuthority(), profile: profile, keys: store, device: name)
    }
  }
}

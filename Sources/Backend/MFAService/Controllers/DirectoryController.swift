internal import ByteCoding
internal import MFADomain
internal import MFAWire

/// The operations that read devices.
struct DirectoryController {
  let directory: Directory

  var operations: [Operation] { [devices, status] }

  private var devices: Operation {
    Operation(
      MFAOperations.devices, "The devices of the caller's own account.", access: .session,
      refusals: [.invalidRequest, .sessionRequired, .secondFactorRequired, .forbidden, .boundElsewhere, .accountLocked]
    ) { request, caller in
      let devices = try await directory.devices(of: Username(request.username), for: caller)
      return DeviceList(devices: devices.map(DeviceList.Entry.init))
    }
  }

  private var status: Operation {
    Operation(
      MFAOperations.deviceStatus,
      "The state of a device, for its user and for the app instance that it is bound to.", access: .attested,
      refusals: [.invalidRequest, .sessionRequired, .secondFactorRequired, .boundElsewhere, .accountLocked]
    ) { request, caller in
      let status = try await directory.status(of: DeviceID(request.deviceId), for: caller)
      return DeviceStatus(
        deviceId: request.deviceId, enrolled: status != nil, method: status?.method.rawValue,
        hasPublicKey: status?.hasPublicKey ?? false, phoneNumber: status?.phoneNumber,
        attested: status?.isAttested ?? false)
    }
  }
}

extension DeviceList.Entry {
  fileprivate init(_ device: Device) {
    self.init(
      deviceId: device.id.text, deviceModel: device.model.text, method: device.method.rawValue,
      enrolledAt: device.enrolledAt.wire, lastUsed: device.lastUsed?.wire,
      attested: device.isAttested)
  }
}

extension Timestamp {
  /// The time in whole seconds in UTC, with `Z`, which every ISO 8601 decoder accepts.
  var wire: String { Timestamp(seconds: seconds).description }
}

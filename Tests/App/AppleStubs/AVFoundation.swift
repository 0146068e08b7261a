// Declarations for type checks, not an implementation.
@_exported public import Foundation

public struct AVMediaType: RawRepresentable, Hashable, Sendable {
  public let rawValue: String
  public init(rawValue: String) { self.rawValue = rawValue }
  public static let video = AVMediaType(rawValue: "vide")
}

@objc public enum AVAuthorizationStatus: Int, Sendable {
  case notDetermined = 0
  case restricted = 1
  case denied = 2
  case authorized = 3
}

// The classes of a capture are not `Sendable`, so that code which needs them to be is found.
open class AVCaptureDevice: NSObject {
  @objc public enum TorchMode: Int, Sendable {
    case off = 0
    case on = 1
    case auto = 2
  }

  open class func `default`(for mediaType: AVMediaType) -> AVCaptureDevice? { fatalError() }
  open class func authorizationStatus(for mediaType: AVMediaType) -> AVAuthorizationStatus { fatalError() }
  open class func requestAccess(for mediaType: AVMediaType) async -> Bool { fatalError() }
  open var hasTorch: Bool { fatalError() }
  open var torchMode: TorchMode {
    get { fatalError() }
    set { fatalError() }
  }
  open func lockForConfiguration() throws { fatalError() }
  open func unlockForConfiguration() { fatalError() }
}

open class AVCaptureInput: NSObject {}

open class AVCaptureDeviceInput: AVCaptureInput {
  public init(device: AVCaptureDevice) throws { fatalError() }
}

open class AVCaptureOutput: NSObject {}

open class AVCaptureConnection: NSObject {}

open class AVCaptureSession: NSObject {
  open var inputs: [AVCaptureInput] { fatalError() }
  open func canAddInput(_ input: AVCaptureInput) -> Bool { fatalError() }
  open func addInput(_ input: AVCaptureInput) { fatalError() }
  open func canAddOutput(_ output: AVCaptureOutput) -> Bool { fatalError() }
  open func addOutput(_ output: AVCaptureOutput) { fatalError() }
  open func startRunning() { fatalError() }
  open func stopRunning() { fatalError() }
}

open class AVMetadataObject: NSObject {
  public struct ObjectType: RawRepresentable, Hashable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public static let qr = ObjectType(rawValue: "org.iso.QRCode")
  }
}

open class AVMetadataMachineReadableCodeObject: AVMetadataObject {
  open var stringValue: String? { fatalError() }
}

open class AVCaptureMetadataOutput: AVCaptureOutput {
  open func setMetadataObjectsDelegate(
    _ objectsDelegate: (any AVCaptureMetadataOutputObjectsDelegate)?, queue objectsCallbackQueue: DispatchQueue?
  ) { fatalError() }
  open var metadataObjectTypes: [AVMetadataObject.ObjectType]! {
    get { fatalError() }
    set { fatalError() }
  }
}

@objc public protocol AVCaptureMetadataOutputObjectsDelegate: NSObjectProtocol {
  @objc optional func metadataOutput(
    _ output: AVCaptureMetadataOutput, didOutput metadataObjects: [AVMetadataObject],
    from connection: AVCaptureConnection)
}

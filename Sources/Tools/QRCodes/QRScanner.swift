/// A camera that sees QR codes. `AVQRCamera` is one on Apple's platforms.
public protocol QRCamera: Sendable {
  /// Whether the user lets the app use the camera.
  var permission: QRCameraPermission { get }
  /// Asks the user. Returns at once if there is an answer already.
  func requestPermission() async -> QRCameraPermission
  /// Starts the camera. The stream yields each text that is seen, possibly many times, until `stop`.
  func start() -> AsyncStream<String>
  /// Stops the camera.
  func stop()
  /// Switches the light on or off, where the device has one.
  func setTorch(_ isOn: Bool)
}

/// Whether the user lets the app use the camera.
public enum QRCameraPermission: Sendable, Hashable {
  /// The user was not asked yet.
  case notDetermined
  /// The user said no, or may not decide.
  case denied
  /// The camera may be used.
  case authorized
}

/// What a screen that scans a code shows, and what it does next: a value without a camera.
public struct QRScanner<Result: Sendable>: Sendable {
  /// What the screen shows.
  public enum State: Sendable {
    /// The user is being asked.
    case askingPermission
    /// The user said no: the screen says where to change that, and offers to type the secret.
    case denied
    /// The camera runs, with a frame that shows where to hold the code.
    case scanning
    /// A code was seen that is of no use; the camera goes on.
    case invalid(reason: String)
    /// A code was read; the camera is off.
    case found(Result)
  }

  /// What the caller does with the camera.
  public enum Command: Sendable, Hashable {
    case requestPermission, start, stop
    case setTorch(Bool)
  }

  /// What the screen shows.
  public private(set) var state: State = .askingPermission
  /// Whether the light is on.
  public private(set) var isTorchOn = false
  private let read: @Sendable (String) -> Swift.Result<Result, QRScannerFault>

  /// - Parameter read: Validates the text of a code at once: what it means, or why it is of no use.
  public init(read: @escaping @Sendable (String) -> Swift.Result<Result, QRScannerFault>) { self.read = read }

  /// The screen appears.
  public mutating func appear(_ permission: QRCameraPermission) -> [Command] {
    switch permission {
    case .notDetermined:
      state = .askingPermission
      return [.requestPermission]
    case .denied:
      state = .denied
      return []
    case .authorized:
      state = .scanning
      return [.start]
    }
  }

  /// A code was seen.
  public mutating func see(_ text: String) -> [Command] {
    // The camera may deliver more before it stops.
    if case .found = state { return [] }
    switch read(text) {
    case .success(let result):
      state = .found(result)
      return disappear()
    case .failure(let fault):
      state = .invalid(reason: fault.reason)
      return []
    }
  }

  /// The user touches the button of the light.
  public mutating func toggleTorch() -> [Command] {
    switch state {
    case .scanning, .invalid:
      isTorchOn.toggle()
      return [.setTorch(isTorchOn)]
    case .askingPermission, .denied, .found: return []
    }
  }

  /// The screen disappears.
  public mutating func disappear() -> [Command] {
    defer { isTorchOn = false }
    return (isTorchOn ? [.setTorch(false)] : []) + [.stop]
  }
}

/// Why a code is of no use, for the user.
public struct QRScannerFault: Error, Sendable, Hashable {
  /// One sentence.
  public let reason: String

  /// Names a reason.
  public init(_ reason: String) { self.reason = reason }
}

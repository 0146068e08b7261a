#if os(iOS)
  public import AVFoundation

  /// The camera of an iPhone. The app's Info.plist has `NSCameraUsageDescription`.
  public final class AVQRCamera: NSObject, QRCamera, AVCaptureMetadataOutputObjectsDelegate, @unchecked Sendable {
    // All of them are used on this queue alone, except the session, which AVFoundation guards.
    private let queue = DispatchQueue(label: "QR camera")
    private let session = AVCaptureSession()
    private var continuation: AsyncStream<String>.Continuation?

    /// The session, for a preview layer.
    public var previewSession: AVCaptureSession { session }

    public var permission: QRCameraPermission {
      switch AVCaptureDevice.authorizationStatus(for: .video) {
      case .authorized: .authorized
      case .notDetermined: .notDetermined
      default: .denied
      }
    }

    public func requestPermission() async -> QRCameraPermission {
      await AVCaptureDevice.requestAccess(for: .video) ? .authorized : .denied
    }

    public func start() -> AsyncStream<String> {
      let (stream, continuation) = AsyncStream<String>.makeStream(bufferingPolicy: .bufferingNewest(1))
      queue.async { [self] in
        self.continuation = continuation
        if session.inputs.isEmpty { configure() }
        session.startRunning()
      }
      return stream
    }

    public func stop() {
      queue.async { [self] in
        session.stopRunning()
        continuation?.finish()
        continuation = nil
      }
    }

    public func setTorch(_ isOn: Bool) {
      guard let device = AVCaptureDevice.default(for: .video), device.hasTorch,
        (try? device.lockForConfiguration()) != nil
      else { return }
      device.torchMode = isOn ? .on : .off
      device.unlockForConfiguration()
    }

    private func configure() {
      guard let device = AVCaptureDevice.default(for: .video), let input = try? AVCaptureDeviceInput(device: device),
        session.canAddInput(input)
      else { return }
      session.addInput(input)
      let output = AVCaptureMetadataOutput()
      guard session.canAddOutput(output) else { return }
      session.addOutput(output)
      output.setMetadataObjectsDelegate(self, queue: queue)
      output.metadataObjectTypes = [.qr]
    }

    public func metadataOutput(
      _ output: AVCaptureMetadataOutput, didOutput objects: [AVMetadataObject], from connection: AVCaptureConnection
    ) {
      for case let code as AVMetadataMachineReadableCodeObject in objects {
        if let text = code.stringValue { continuation?.yield(text) }
      }
    }
  }
#endif

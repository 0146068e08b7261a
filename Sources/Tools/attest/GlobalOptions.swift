internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import Foundation
internal import SimulatedDevice
internal import TransportEngine

/// The options of all commands.
struct GlobalOptions: ParsableArguments {
  @Option(
    name: .long,
    help: ArgumentHelp(
      "Folder of a development authority: TLS root and simulated roots (or SALLYPORT_AUTHORITY). For a gate on this "
        + "machine, by default the folder of `sallyport dev`.", valueName: "dir"))
  var authority: String?

  @Option(
    name: .long,
    help: ArgumentHelp("A PEM file with the TLS root of the gate, instead of the authority's.", valueName: "pem"))
  var ca: String?

  @Option(name: .long, help: ArgumentHelp("The device to use; `default` is made if necessary.", valueName: "name"))
  var device: String?

  @Option(
    name: .long,
    help: ArgumentHelp(
      "The platform of the device: ios or android. Without `--device`, `android` is the device `android`.",
      valueName: "platform"))
  var platform: Platform?

  @Flag(name: .long, help: "Write results as JSON.")
  var json = false

  var environment: [String: String] { ProcessInfo.processInfo.environment }

  /// The folder of the authority, if one was named.
  var authorityFolder: AuthorityFolder? {
    let path = authority ?? environment["SALLYPORT_AUTHORITY"]
    return path.flatMap { $0.isEmpty ? nil : AuthorityFolder(path: $0) }
  }

  /// These options for commands to the gate at `address`: for a gate on this machine `withStandardAuthority`.
  func forGate(at address: GateURL) -> GlobalOptions { address.isLoopback ? withStandardAuthority : self }

  /// These options, which without a folder name that of `sallyport dev`, if it has an authority. A line on standard error
  /// says so.
  var withStandardAuthority: GlobalOptions {
    guard authorityFolder == nil, let folder = AuthorityFolder.standard(environment), folder.isThere else {
      return self
    }
    StandardError.write("authority: \(TerminalText.printable(folder.path))\n")
    var options = self
    options.authority = folder.path
    return options
  }

  func loadAuthority() throws(Failure) -> TestAuthority {
    guard let folder = authorityFolder else {
      throw Failure(
        .usage, "a simulated device needs an authority that vouches for it",
        hint: "--authority DIR (or SALLYPORT_AUTHORITY) names the folder that `sallyport dev` printed")
    }
    do throws(AuthorityFolderError) { return try folder.load() } catch { throw Failure(error) }
  }

  /// The trusted authorities: the file of --ca, else the authority's TLS root, else the system's roots. Verification
  /// is never off.
  func makeTLS(certificate: String? = nil, key: String? = nil) throws(Failure) -> ClientTLS {
    do throws(ServerTLS.SetupError) {
      return try ClientTLS(
        authorityFile: ca ?? authorityFolder?.tlsAuthorityPath, certificateFile: certificate, keyFile: key)
    } catch {
      throw Failure(.noInput, "\(error)")
    }
  }

  /// The device to use, for which `authority` vouches. Without `--device` it is that of the platform by default, which
  /// is made if it is not there.
  func device(in store: DeviceStore, under authority: TestAuthority) throws(Failure) -> Device {
    let platform = platform ?? .ios
    let name = device ?? platform.defaultDevice
    if device == nil, !store.exists(name) {
      let device = Device(name: name, on: platform, authority: authority, createdAt: .now())
      do throws(Failure) {
        try store.make(device)
      } catch {
        // Another process has made it in the meantime: that one is as good.
        guard store.exists(name) else { throw error }
      }
    }
    let device = try store.load(name)
    try device.check(on: self.platform, under: authority)
    return device
  }

  func deviceStore() throws(Failure) -> DeviceStore { try DeviceStore(environment: environment) }

  static let defaultDevice = "default"
}

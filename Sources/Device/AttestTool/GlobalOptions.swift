internal import CommandSupport
internal import ArgumentParser
internal import ByteCoding
internal import Foundation
internal import SimulatedDevice
internal import TransportEngine

/// The options of all commands.
struct GlobalOptions: ParsableArguments {
  @Option(
    name: .long,
    help: ArgumentHelp(
      "Folder of a development authority: TLS root and simulated roots (or SALLYPORT_AUTHORITY).", valueName: "dir"))
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

  func deviceStore() throws(Failure) -> DeviceStore { try DeviceStore(environment: environment) }

  static let defaultDevice = "default"
}

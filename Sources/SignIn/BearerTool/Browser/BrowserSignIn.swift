internal import CommandSupport
internal import Foundation
internal import OIDCClient

/// A sign-in in the browser, which comes back to a port of this machine (RFC 8252, section 7.3).
struct BrowserSignIn {
  let client: ProviderClient
  let nonce: String?
  let startsBrowser: Bool
  let limit: Duration

  func run() async throws -> StoredAccount {
    let listener = try await LoopbackListener.open(redirectURI: client.provider.endpoints.redirectURI)
    do {
      let account = try await signIn(listener)
      await listener.close(showing: .signedIn(client.provider.name))
      return account
    } catch {
      await listener.close(showing: .failed((error as? OIDCError)?.code ?? "failed"))
      throw error
    }
  }

  private func signIn(_ listener: LoopbackListener) async throws -> StoredAccount {
    let request = try await client.begin(redirectURI: listener.redirectURI, nonce: nonce)
    if !(startsBrowser && SystemBrowser.open(request.url)) {
      StandardError.write("open this address in a browser on this machine:\n\n\(request.url.absoluteString)\n\n")
    }
    // While the person is busy there, so that one exchange remains when the code arrives.
    async let keys: Void = client.warmUp()
    guard let redirect = await listener.redirect(within: limit) else {
      throw Failure(
        .retryLater, "no_answer: nothing came back from the browser within \(limit.components.seconds) s",
        hint: "on a machine without a browser: `bearer login --device` or `bearer login --paste`")
    }
    await keys
    return try await client.finish(redirect, of: request)
  }
}

/// The browser of the desktop.
enum SystemBrowser {
  /// Starts it with `url`.
  ///
  /// - Returns: Whether there is a desktop and a program that opens addresses.
  static func open(_ url: URL) -> Bool {
    let environment = ProcessInfo.processInfo.environment
    let named = environment["BROWSER"].flatMap { $0.isEmpty ? nil : $0 }
    let hasDesktop = ["DISPLAY", "WAYLAND_DISPLAY"].contains { environment[$0]?.isEmpty == false }
    guard let program = named ?? (hasDesktop ? "xdg-open" : nil) else { return false }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [program, url.absoluteString]
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    do { try process.run() } catch { return false }
    // `env` exits at once with 127 if there is no such program.
    usleep(100_000)
    return process.isRunning || process.terminationStatus == 0
  }
}

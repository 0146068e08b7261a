internal import Commands
internal import Foundation
internal import OIDCClient

/// A sign-in in the browser, which comes back to a port of this machine (RFC 8252, section 7.3).
struct BrowserSignIn {
  let client: ProviderClient
  let nonce: String?
  let startsBrowser: Bool
  let limit: Duration

  /// Signs in, and calls `store` with the tokens before the browser shows that the person is signed in.
  func run(storing store: (StoredAccount) async throws -> Void) async throws -> StoredAccount {
    let listener = try await LoopbackListener.open(redirectURI: client.provider.endpoints.redirectURI)
    do {
      let account = try await signIn(listener)
      try await store(account)
      await listener.close(showing: .signedIn(client.provider.name))
      return account
    } catch {
      let code = (error as? OIDCError)?.code ?? (error as? Failure)?.message.prefix { $0 != ":" }.description
      await listener.close(showing: .failed(code ?? "failed"))
      throw error
    }
  }

  private func signIn(_ listener: LoopbackListener) async throws -> StoredAccount {
    let end = ContinuousClock.now + limit
    let request = try await client.begin(redirectURI: listener.redirectURI, nonce: nonce)
    // Every user of the machine can read the arguments of a program, so the browser gets a short address of this port.
    let address = await listener.begin(sendingTo: request.url) { request.isAnswered(by: $0) }
    let outcome = startsBrowser ? SystemBrowser.open(address) : .missing
    if outcome != .started {
      if case .refused = outcome, let note = outcome.note { Console.note(note) }
      let limit = request.lifetime.map { " within \($0) s" } ?? ""
      StandardError.write("open this address in a browser on this machine, once\(limit):\n\n\(address)\n\n")
    }
    // While the person is busy there, so that one exchange remains when the code arrives.
    async let keys: Void = client.warmUp()
    let redirect = try url(of: await listener.redirect(within: max(end - .now, .zero)))
    await keys
    return try await client.finish(redirect, of: request)
  }

  /// The redirect that was waited for.
  ///
  /// - Throws: If none came, or if another person may take part in the sign-in.
  private func url(of outcome: LoopbackListener.Outcome) throws(Failure) -> URL {
    switch outcome {
    case .redirect(let url): return url
    case .nothing(strangeStates: 0):
      throw Failure(
        .retryLater, "no_answer: nothing came back from the browser within \(limit.components.seconds) s",
        hint: "on a machine without a browser: `bearer login --device` or `bearer login --paste`")
    case .nothing:
      throw Failure(
        .refused,
        "wrong_state: within \(limit.components.seconds) s, only redirects without the state of this sign-in came",
        hint: "begin again, in one window of the browser: `bearer login \(client.provider.id)`")
    case .ended(let refusal):
      throw Failure(
        .refused, "\(refusal.code): \(refusal.what) came to the port that waits for the browser", hint: refusal.hint)
    }
  }
}

public import Foundation
public import Wire

/// The metadata and the keys of one issuer: fetched when they are needed, and kept.
///
/// Concurrent callers share one fetch. A provider that changes its keys is noticed by the first token with an unknown key
/// identifier; the keys are then fetched again, at most once in five minutes, so that forged identifiers cause no load. A
/// key that the provider has withdrawn is used for at most an hour. While the provider cannot be reached, the keys of the
/// last fetch stay in use.
public actor ProviderDirectory {
  /// The shortest time between two fetches of the keys because of an unknown identifier, in seconds.
  public static let shortestPause: TimeInterval = 300

  /// The age at which metadata and keys are fetched again, in seconds: a provider may have withdrawn a key.
  public static let longestUse: TimeInterval = 3600

  /// The issuer, exactly as in its discovery document.
  public nonisolated let issuer: String
  private let documentURL: URL?
  private let keysURL: URL?
  private let exchange: DocumentExchange
  private let now: @Sendable () -> Date
  private var metadataFetch: Task<Result<ProviderMetadata, OIDCError>, Never>?
  private var keysFetch: Task<Result<ProviderKeys, OIDCError>, Never>?
  private var keys: ProviderKeys?
  private var keysFetchedAt: Date?
  private var keysAskedAt: Date?

  /// Uses `transport`, which must follow no redirects; `now` is the clock. The keys are at `keysURL`; without one, the
  /// discovery document says where.
  /// The discovery document is at `documentURL`; without one, below the issuer.
  public init(
    issuer: String, documentURL: URL? = nil, keysURL: URL? = nil, transport: any HTTPTransport,
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    self.issuer = issuer
    self.documentURL = documentURL
    self.keysURL = keysURL
    exchange = DocumentExchange(transport: transport)
    self.now = now
  }

  /// What the provider says of itself.
  ///
  /// - Throws: `.transport`, `.redirected`, `.status`, `.tooLarge`, `.malformed`, `.otherIssuer`. The next call tries again.
  public func metadata() async throws(OIDCError) -> ProviderMetadata {
    let fetch =
      metadataFetch
      ?? Task { [issuer, documentURL, exchange] in
        do throws(OIDCError) {
          guard let url = documentURL ?? ProviderMetadata.url(of: issuer) else {
            throw .malformed("the issuer is not a URL")
          }
          let json = try await exchange.document(at: url, called: "the discovery document")
          return .success(try ProviderMetadata(json: json, issuer: issuer))
        } catch {
          return .failure(error)
        }
      }
    metadataFetch = fetch
    let result = await fetch.value
    if case .failure = result, metadataFetch == fetch { metadataFetch = nil }
    return try result.get()
  }

  /// The keys to verify `token` with.
  ///
  /// - Throws: As `metadata()`, if there are no keys at all. With keys of an earlier fetch, an unreachable provider is no
  ///   error: the token is then judged by them.
  public func keys(for token: IDToken) async throws(OIDCError) -> ProviderKeys {
    guard let keys else { return try await fetchKeys() }
    if isFresh, token.keyID.map(keys.contains) ?? true { return keys }
    return await changedKeys() ?? keys
  }

  /// The keys of another fetch, because a token fits none of the present ones, or those are old.
  ///
  /// - Returns: `nil` if the last try was less than five minutes ago, or this one fails.
  package func changedKeys() async -> ProviderKeys? {
    // The fetch that another token began may bring this one's key. A clock that was set back delays no fetch.
    guard keysFetch == nil else { return try? await fetchKeys() }
    if let keysAskedAt, (0..<Self.shortestPause).contains(now().timeIntervalSince(keysAskedAt)) { return nil }
    keysAskedAt = now()
    // After an hour, the address of the keys may have changed, too. Where it cannot be learned, the known one stays.
    let known = metadataFetch
    if !isFresh { metadataFetch = nil }
    let found = try? await fetchKeys()
    if metadataFetch == nil { metadataFetch = known }
    return found
  }

  /// Whether the keys are of the last hour. A clock that was set back delays no fetch.
  private var isFresh: Bool {
    keysFetchedAt.map { (0..<Self.longestUse).contains(now().timeIntervalSince($0)) } ?? false
  }

  /// The keys of the last fetch; without one, they are fetched.
  func currentKeys() async throws(OIDCError) -> ProviderKeys {
    if let keys { return keys }
    return try await fetchKeys()
  }

  /// Fetches metadata and keys ahead of the first token. A failure is reported when they are needed.
  func fetchKeysIfNeeded() async {
    if keys == nil { _ = try? await fetchKeys() }
  }

  private func fetchKeys() async throws(OIDCError) -> ProviderKeys {
    let fetch =
      keysFetch
      ?? Task {
        do throws(OIDCError) {
          let url: URL
          if let keysURL { url = keysURL } else { url = try await metadata().requiredKeysURL() }
          return .success(try ProviderKeys(json: await exchange.document(at: url, called: "the provider's keys")))
        } catch {
          return .failure(error)
        }
      }
    keysFetch = fetch
    let result = await fetch.value
    // Only the first that resumes: a later one might replace newer keys.
    if keysFetch == fetch {
      keysFetch = nil
      if case .success(let fetched) = result {
        keys = fetched
        keysFetchedAt = now()
      }
    }
    return try result.get()
  }
}

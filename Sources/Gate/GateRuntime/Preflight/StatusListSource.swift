internal import ACME
public import AndroidKeyAttestation
public import AttestGate
internal import ByteCoding
internal import ConfigurationEngine
public import Wire
internal import Glibc
public import Settings
internal import Transport

/// Where the list of revoked Android attestation certificates comes from.
public struct StatusListSource: Sendable {
  /// A list as it was read, and its bytes if they were downloaded.
  public typealias Reading = (list: RevokedCertificates.Dated, download: [UInt8]?)

  private let place: GateSettings.StatusList.Place
  private let proxies: ProxyVariables

  /// - Parameter proxies: Choose the proxy for a URL.
  public init(_ place: GateSettings.StatusList.Place, proxies: ProxyVariables = .ofProcess) {
    self.place = place
    self.proxies = proxies
  }

  /// Whether reading needs no network.
  public var isFile: Bool {
    if case .file = place { true } else { false }
  }

  /// The path, or the URL without its query, which may hold a key.
  public var text: String {
    switch place {
    case .file(let path): path
    case .url(let url, _): MaskedURL.withoutQuery(url)
    }
  }

  /// Reads the list. A file is as current as its last change, a download as now.
  public func read() async throws(StatusListFailure) -> Reading {
    switch place {
    case .file(let path): return (try Self.file(path), nil)
    case .url(let url, let caFile):
      let now = Timestamp.now()
      let content = try await download(url, caFile: caFile)
      return (RevokedCertificates.Dated(try Self.parsed(content), currentAt: now), content)
    }
  }

  /// The list in `content`.
  public static func parsed(_ content: [UInt8]) throws(StatusListFailure) -> AndroidStatusList {
    do throws(AndroidStatusListError) { return try AndroidStatusList(content) } catch {
      throw StatusListFailure(reason: "\(error)")
    }
  }

  private static func file(_ path: String) throws(StatusListFailure) -> RevokedCertificates.Dated {
    let content: [UInt8]
    do throws(FileContentError) {
      content = try FileContent.read(path, limit: AndroidStatusList.maximumSize)
    } catch {
      throw StatusListFailure(reason: error.reason)
    }
    var status = stat()
    guard stat(path, &status) == 0 else { throw StatusListFailure(reason: String(cString: strerror(errno))) }
    let change = Timestamp(seconds: Int64(status.st_mtim.tv_sec))
    // A date in the future would keep the list from ever being too old.
    return RevokedCertificates.Dated(try parsed(content), currentAt: min(change, .now()))
  }

  private func download(_ url: String, caFile: String?) async throws(StatusListFailure) -> [UInt8] {
    let answer: Response
    do throws(ACMEError) {
      // The client of ACME is the gate's client for HTTPS.
      answer = try await EngineTransport(
        authorityFile: caFile, longest: AndroidStatusList.maximumSize, proxies: proxies
      ).send(
        "GET", url,
        headers: HeaderFields([
          .init(name: "Accept", value: "application/json"), .init(name: "User-Agent", value: "sallyport"),
          .init(name: "Connection", value: "close"),
        ]), body: [])
    } catch {
      switch error {
      case .untrusted(_, let reason): throw StatusListFailure(reason: "no trusted connection: \(reason)")
      case .unreachable(_, let reason): throw StatusListFailure(reason: "no connection: \(reason)")
      case .malformed(_, let reason): throw StatusListFailure(reason: "not an answer of HTTP: \(reason)")
      default: throw StatusListFailure(reason: "\(error)")
      }
    }
    guard answer.status == 200 else { throw StatusListFailure(reason: "the server answered \(answer.status)") }
    return answer.body
  }
}

/// Why a status list could not be read or kept.
public struct StatusListFailure: Error, Sendable, Hashable {
  public let reason: String
  public init(reason: String) { self.reason = reason }
}

internal import ConfigurationEngine

extension GateSettings.Store {
  /// Why a text is not a valid store URL. The reason contains no password.
  public struct Malformed: Error, Sendable, Hashable {
    public let reason: String
  }

  /// Parses a URL in the form of `store.url`. The password is in the URL, or in a place where libpq looks for it.
  /// - Throws: `Malformed` if the URL is not valid.
  public init(url: String) throws(Malformed) {
    do throws(InvalidSetting) {
      switch try Kind<DatabaseAddress>.database("store").read(url) {
      case .sqlite(let path): self = .sqlite(path: path)
      case .postgres(let url): self = .postgres(url, passwordFile: nil)
      }
    } catch {
      throw Malformed(reason: error.reason + (error.suggestion.map { " (did you mean \($0))" } ?? ""))
    }
  }
}

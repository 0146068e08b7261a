/// URLs of other servers, for people: they often carry a key.
public enum MaskedURL {
  /// The URL without its query.
  public static func withoutQuery(_ url: String) -> String {
    url.firstIndex(of: "?").map { url[...$0] + "***" } ?? url
  }

  /// Scheme and server alone.
  public static func server(_ url: String) -> String {
    guard let start = url.firstRange(of: "://")?.upperBound,
      let end = url[start...].firstIndex(where: { "/?#".contains($0) })
    else { return url }
    return url[..<end] + "/***"
  }
}

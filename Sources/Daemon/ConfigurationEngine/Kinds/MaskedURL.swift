/// URLs of other servers, for people: they often carry a key.
public enum MaskedURL {
  /// The URL without its query.
  public static func withoutQuery(_ url: String) -> String {
    url.unicodeScalars.firstIndex(of: "?").map { url[..<$0] + "?***" } ?? url
  }

  /// Scheme and server alone.
  public static func server(_ url: String) -> String {
    // A mark that combines with a sign makes another character of it, but the sign stays a sign of the URL.
    let scalars = url.unicodeScalars
    guard let start = scalars.firstRange(of: "://".unicodeScalars)?.upperBound,
      let end = scalars[start...].firstIndex(where: { "/?#".unicodeScalars.contains($0) })
    else { return url }
    return url[..<end] + "/***"
  }
}

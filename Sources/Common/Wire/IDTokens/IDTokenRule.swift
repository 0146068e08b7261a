/// A rule of OpenID Connect Core 1.0, section 3.1.3.7, that needs no key.
package protocol IDTokenRule: Sendable {
  /// What holds if the rule does: one line for `bearer explain`.
  var statement: String { get }

  /// - Throws: The rejection of this rule.
  func check(_ token: IDToken, _ expected: IDTokenExpectation) throws(IDTokenRejection)
}

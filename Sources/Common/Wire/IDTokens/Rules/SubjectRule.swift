/// Section 2: there is a subject of at most 255 characters. Section 12.2: a refresh keeps it.
///
/// Control characters are refused: a database that ends a text at U+0000 would take two users for one.
struct SubjectRule: IDTokenRule {
  let statement = "sub names the user, the same as before"

  func check(_ token: IDToken, _ expected: IDTokenExpectation) throws(IDTokenRejection) {
    try token.claims.judge("sub")
    guard let subject = token.claims.subject, (1...255).contains(subject.utf8.count),
      !subject.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }),
      expected.subject == nil || subject.isIdentical(to: expected.subject)
    else { throw .subject }
  }
}

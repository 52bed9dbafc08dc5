/**
 * Words that this project does not use, each with what to write instead: the RFC's and the field's terms,
 * and plain active English. `test/words.test.ts` applies them to names, texts, comments, file names and documents.
 */

/** `word <name>: path` → why this one file may use the word. An entry that is no longer needed fails. */
export const wordExceptions: Readonly<Record<string, string>> = {
  'word nobody: test/vectors/torture-semantics.ts': 'quotes messages of RFC 4475',
  'word everyone: test/vectors/torture-semantics.ts': 'quotes messages of RFC 4475',
}

export interface ForbiddenWord {
  /** In an exception: `word <name>: <path>`. */
  readonly name: string
  readonly pattern: RegExp
  readonly instead: string
}

/**
 * Looked for everywhere. Names are split first: `takePlace` reads `take Place`, `one_who` reads `one who`.
 */
export const forbiddenWords: readonly ForbiddenWord[] = [
  {
    name: 'whoever',
    pattern: /\bwho(?:m|se)?ever\b/gi,
    instead: 'the party: "a client that …", "the caller"',
  },
  {
    name: 'nobody',
    pattern: /\b(?:no|some|any|every)body\b/gi,
    instead: 'the party, or the passive: "no client", "another user", "any source", "unknown"',
  },
  {
    name: 'everyone',
    pattern: /\b(?:every|any|some)one\b|\bno one\b/gi,
    instead: 'the party: "every client", "any user"',
  },
  {
    name: 'one who',
    pattern: /\b(?:one|ones|those|him) who\b/gi,
    instead: 'the party: "a caller that …", "users with …"',
  },
  {
    name: 'he',
    pattern: /\b(?:he|his|him|himself|she|her|hers|herself)\b/gi,
    instead: 'the party: "the caller", or "it", "its", "they"',
  },
  { name: 'whom', pattern: /\bwhom\b/gi, instead: 'a sentence with the party as its subject' },
  { name: 'house', pattern: /\bhouses?\b/gi, instead: 'tenant, tenant scope, `tenantOf`' },
  { name: 'leaver', pattern: /\bleavers?\b/gi, instead: 'transferor (RFC 5589)' },
  {
    name: 'stayer',
    pattern: /\bstayers?\b/gi,
    instead: 'transferee or transfer target (RFC 5589)',
  },
  { name: 'take place', pattern: /\btake Place\b/g, instead: '`handleReplaces` (RFC 3891)' },
  { name: 'farewell', pattern: /\bfarewells?\b/gi, instead: 'BYE, BYE headers' },
  { name: 'expel', pattern: /\bexpel(?:s|led)?\b/gi, instead: 'close with an error' },
  { name: 'summon', pattern: /\bsummon(?:s|ed|ing)?\b/gi, instead: 'dial, dial out, call' },
  { name: 'hasten', pattern: /\bhasten(?:s|ed|ing)?\b/gi, instead: 'force stop' },
  { name: 'unwind', pattern: /\bunwinds?\b|\bunwound\b/gi, instead: 'close all' },
  { name: 'rescue', pattern: /\brescue[ds]?\b/gi, instead: 'flush on crash, save, copy' },
  {
    name: 'handed over',
    pattern: /\bhandovers?\b/gi,
    instead: '`TransferLeg`, third-party call control (RFC 3725)',
  },
  { name: 'waiting phone', pattern: /\bwaiting Phones?\b/gi, instead: '`ThirdPartyCallLeg`' },
  { name: 'journey', pattern: /\bjourneys?\b/gi, instead: '`RoutingContext`' },
  { name: 'stand-in', pattern: /\bstand-ins?\b|\b[Ss]tand Ins?\b/g, instead: '`ForwardedCaller`' },
  { name: 'successor', pattern: /\bsuccessors?\b/gi, instead: '`ReplacementLeg`, the next …' },
  {
    name: 'objection',
    pattern: /\bobjections?\b/gi,
    instead: 'validation, rejection, `rejectionFor`',
  },
  {
    name: 'standing',
    pattern: /\bstanding(?! queue)\b/gi,
    instead: 'status, state; "is", "is in". (A standing queue is the field’s word.)',
  },
  {
    name: 'cascade',
    pattern: /\b(?:c|C)ascad(?:e|es|ed|ing)\b/g,
    instead: 'failover, next candidate. (`ON DELETE CASCADE` is SQL.)',
  },
  {
    name: 'believe',
    pattern: /\bbeliev(?:e|es|ed|ing)\b/gi,
    instead: 'trust, trusted, accept',
  },
]

/** Looked for in code only, spelt exactly so: as plain English in a comment they may be right. */
export const forbiddenNames: readonly ForbiddenWord[] = [
  { name: 'Reading', pattern: /\bReading\b/g, instead: '`IncomingInvite`' },
  { name: 'Announced', pattern: /\bAnnounced\b/g, instead: '`OutgoingInvite`' },
  { name: 'Reach', pattern: /\bReach\b/g, instead: '`RequestScope`' },
  { name: 'reachOf', pattern: /\breachOf\b/g, instead: '`requestScope`' },
  { name: 'goOn', pattern: /\bgoOn\b/g, instead: '`followForward`' },
  { name: 'travel', pattern: /\btravel\b/g, instead: '`dialRoute`' },
  { name: 'otherSide', pattern: /\botherSide\b/g, instead: '`peerLeg`' },
  {
    name: 'HealthMonitor',
    pattern: /\bHealthMonitor\b/g,
    instead: 'probe, prober (the glossary has no health check)',
  },
  { name: 'kept', pattern: /\bkept\(/g, instead: '`detachString`' },
]

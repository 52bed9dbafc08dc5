/**
 * SIP grammar, for programs that read or write header values. Pure, and no part of the stack.
 * `parse…` is strict: `undefined` where the grammar is broken. `read…` reads as much of any text as
 * it can, for values that no rule of RFC 3261 lets us refuse.
 */
export {
  composeRequest,
  composeResponse,
  ANONYMOUS_HOST,
  escapeUser,
  formatNameAddr,
  replaceHosts,
  replaceUsers,
  withoutUriParams,
} from './message.ts'
export { detachString } from './message.ts'
export {
  bracketed,
  hostPort,
  parseHostPort,
  plainHost,
  withoutBrackets,
  parseUri,
  sameUri,
  unescapeText,
  type Uri,
} from './fields.ts'
export {
  endOfQuoted,
  headerNamed,
  isToken,
  knownName,
  parseParams,
  skipBlanks,
  splitList,
  unquote,
  noParams,
  type Params,
} from './headers.ts'
export type { SipMessage } from './message.ts'
export { parseAppMessage } from './parse.ts'
export { readAddress, readSoleUri, readUri, type ReadUri } from './fields.ts'
export {
  type NameAddr,
  parseNameAddr,
  qValueOf,
  tagOf,
  parseCSeq,
  parseExpires,
  parseMinSE,
  parseOptionTags,
  parseReason,
  parseReplaces,
  parseRetryAfter,
  parseSessionExpires,
  type Replaces,
} from './fields.ts'
export { isNoHost } from './no-host.ts'
export { isKnownStatus, reasonPhrase } from './message.ts'
export { ReleasingMap } from './releasing-map.ts'

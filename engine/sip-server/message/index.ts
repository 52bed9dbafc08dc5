/**
 * The second door of this server: SIP grammar, for programs that read or write header values. Pure, and no
 * part of the stack. `parse…` is strict: `undefined` for what the grammar does not allow. `read…` takes what
 * it can of any text, for values that no rule of RFC 3261 lets us refuse.
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
} from './compose.ts'
export { detachString } from './decode.ts'
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
} from './uri.ts'
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
export { readAddress, readSoleUri, readUri, type ReadUri } from './lenient.ts'
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
export { isKnownStatus, reasonPhrase } from './reason-phrases.ts'
export { ReleasingMap } from './releasing-map.ts'

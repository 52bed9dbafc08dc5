/**
 * The token proves to another instance who has asked for an attended transfer between calls of two
 * instances. Only instances can read and write tokens: they are encrypted and authenticated with a
 * key that is derived from SECRET_KEY, and bound to the instance that reads them and to the dialog
 * that is replaced.
 */
import { hkdfSync } from 'node:crypto'
import { SecretBox } from '../../../schema/secrets/secret-box.ts'
import type { Replaces } from '../../../schema/sip/index.ts'

export interface TransferToken {
  /** Who has both calls, as `partyKeyOf` names it. */
  readonly party: string
  /** The instance that has made it. */
  readonly issuer: string
  /** Milliseconds UTC. */
  readonly issuedAt: number
  /**
   * How many transfers, one after the other, have led to it: a loop of machines may lead across
   * instances.
   */
  readonly transfersBefore: number
  /** That instance records the call of the transferee, and so the two parties from now on. */
  readonly isRecorded: boolean
}

/** A longer text is not a token. */
const MAX_LENGTH = 1_200
/** Separates these tokens from other tokens and from secrets of the database. */
const PURPOSE = 'tollgate transfer tokens'
/** How `SecretBox` begins its texts. */
const SEALED = 'enc1:'

export class TransferTokens {
  readonly #box: SecretBox

  /** @param key 32 bytes that all instances of the installation have, and nothing else. */
  constructor(key: Buffer) {
    this.#box = new SecretBox(Buffer.from(hkdfSync('sha256', key, '', PURPOSE, 32)))
  }

  /** @param holder the instance that reads it. */
  write(token: TransferToken, holder: string, replaces: Replaces): string {
    const { party, issuer, issuedAt, transfersBefore, isRecorded } = token
    const fields: Fields = [party, issuer, issuedAt, transfersBefore, isRecorded]
    return this.#box.seal(bindingOf(holder, replaces), JSON.stringify(fields)).slice(SEALED.length)
  }

  /** Undefined: it is forged, damaged, or for another use. */
  read(text: string, holder: string, replaces: Replaces): TransferToken | undefined {
    if (text.length > MAX_LENGTH) return undefined
    const opened = this.#box.open(bindingOf(holder, replaces), SEALED + text)
    if (opened === undefined) return undefined
    // Authenticated: only `write` has written it.
    const [party, issuer, issuedAt, transfersBefore, isRecorded = false] = JSON.parse(
      opened,
    ) as Fields
    return { party, issuer, issuedAt, transfersBefore, isRecorded }
  }
}

type Fields = readonly [
  party: string,
  issuer: string,
  issuedAt: number,
  transfersBefore: number,
  /** Absent: an instance of an earlier version has written it. */
  isRecorded?: boolean,
]

const bindingOf = (holder: string, { callId, toTag, fromTag, isEarlyOnly }: Replaces) => ({
  table: 'transfer token',
  column: 'dialog',
  row: JSON.stringify([holder, callId, toTag, fromTag, isEarlyOnly]),
})

/**
 * Attended transfers across the instances of the installation: which instances may have a dialog,
 * and requests of other instances.
 */
import { headerNamed, parseReplaces, type Replaces } from '../../../schema/sip/index.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import { canonicalAddress } from '../../../schema/net/ip-address.ts'
import { type PeerInstance, uriOfPeer } from '../../registrar/hop/phone-hop.ts'
import type { BindingSource } from '../../registrar/bindings.ts'
import type { OtherInstanceCandidate } from '../dialing/outgoing-invite.ts'
import { sourceOf } from '../inbound/admission.ts'
import type { SipRequest } from '../signalling.ts'
import { TRANSFER_TOKEN } from '../sip-headers.ts'
import { TransferTokens } from './transfer-tokens.ts'

export interface OtherInstancesDeps {
  /** The name of this instance. */
  readonly self: string
  /** 32 bytes that all instances of the installation have, and nothing else. */
  readonly key: Buffer
  readonly peers: {
    find(name: string): PeerInstance | undefined
    /** The names of the instances that are alive, including this one. */
    readonly alive: readonly string[]
  }
  /** Milliseconds UTC, by the clock of the machine: other instances have another steady one. */
  readonly wallNow: () => number
  /** Whether this instance records the call at the moment. */
  readonly isRecording: (callUuid: string) => boolean
  /** A token was forged, too old, or came from a wrong address. */
  readonly onRefused: (source: BindingSource) => void
  /** A valid token has come from this address: it is the address of an instance. */
  readonly onInstanceAt: (address: string) => void
  readonly log: Log
}

/** The request of another instance to replace a party of a call of this instance. */
export interface ReplacementRequest {
  readonly replaces: Replaces
  /** Who has both calls, as that instance knows it. */
  readonly party: string
  /** How many transfers, one after the other, have led to it. */
  readonly transfersBefore: number
  /** That instance records the two parties from now on. */
  readonly isRecorded: boolean
}

/** The facts of a transfer that its token contains. */
interface TransferFacts extends Pick<ReplacementRequest, 'party' | 'transfersBefore'> {
  /** The call of the transferee. */
  readonly callUuid: string
}

/** Instances are tried one after the other: a token is valid while the others refuse. */
const LIFETIME_MS = 60_000
/** The most by which the clocks of two instances may differ. */
const MAX_SKEW_MS = 30_000

export class TransferInstances {
  readonly #deps: OtherInstancesDeps
  readonly #tokens: TransferTokens

  constructor(deps: OtherInstancesDeps) {
    this.#deps = deps
    this.#tokens = new TransferTokens(deps.key)
  }

  /** The instances that may have this dialog of a party. */
  candidates(
    replaces: Replaces,
    { party, transfersBefore, callUuid }: TransferFacts,
  ): readonly OtherInstanceCandidate[] {
    const { self, peers, wallNow } = this.#deps
    const isRecorded = this.#deps.isRecording(callUuid)
    const others = peers.alive.filter((name) => name !== self)
    return others.flatMap((holder) => {
      const peer = peers.find(holder)
      if (peer === undefined) return []
      const token = this.#tokens.write(
        { party, issuer: self, issuedAt: wallNow(), transfersBefore, isRecorded },
        holder,
        replaces,
      )
      return { kind: 'other-node', uri: uriOfPeer(peer), holder, replaces: textOf(replaces), token }
    })
  }

  /** Undefined: the INVITE has no token. */
  read(request: SipRequest): ReplacementRequest | 'refused' | undefined {
    const { headers } = request
    const text = headerNamed(headers, TRANSFER_TOKEN.toLowerCase())
    if (text === undefined) return undefined
    const replaces = parseReplaces(headers['replaces'] ?? '')
    const token = replaces && this.#tokens.read(text, this.#deps.self, replaces)
    if (replaces && token && this.#isFrom(token.issuer, request) && this.#isFresh(token)) {
      this.#deps.onInstanceAt(request.sourceAddress)
      const { party, transfersBefore, isRecorded } = token
      return { replaces, party, transfersBefore, isRecorded }
    }
    this.#deps.onRefused(sourceOf(request))
    return 'refused'
  }

  #isFrom(instance: string, { sourceAddress }: SipRequest): boolean {
    const { addresses = [] } = this.#deps.peers.find(instance) ?? {}
    return addresses.includes(canonicalAddress(sourceAddress))
  }

  #isFresh({ issuer, issuedAt }: { readonly issuer: string; readonly issuedAt: number }) {
    const ageMs = this.#deps.wallNow() - issuedAt
    if (ageMs >= -MAX_SKEW_MS && ageMs <= LIFETIME_MS + MAX_SKEW_MS) return true
    const message = 'the token of another instance is too old: compare the clocks'
    this.#deps.log('warn', message, { node: issuer, ageMs })
    return false
  }
}

/** RFC 3891 §6.1. */
const textOf = ({ callId, toTag, fromTag, isEarlyOnly }: Replaces): string =>
  `${callId};to-tag=${toTag};from-tag=${fromTag}${isEarlyOnly ? ';early-only' : ''}`

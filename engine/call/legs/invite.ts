/** An INVITE that we received and have not answered yet. */
import type { Answer, Headers, SipRequest, SipResponse, SrfDialog } from '../srf/drachtio.ts'
import type { SrfClient } from '../srf/srf-client.ts'
import { requires100rel } from '../sip/headers.ts'
import type { Caller } from './caller.ts'
import type { Participant } from './conversation.ts'
import { respond } from '../sip/answers.ts'

/** Somebody of another call who takes the caller's place when the call is answered. */
export interface Successor extends Caller {
  /** The call has ended before that. */
  refused(status: number, reason: string): void
}

export class Invite implements Caller {
  readonly owesAck = true
  readonly keepsOrigin = false
  readonly request: SipRequest
  readonly #answer: Answer
  #isCancelled = false
  readonly #isReliable: boolean
  /** An answer to its offer has gone out reliably. */
  #hasAnswered = false
  #isAccepted = false
  #successor: Successor | undefined

  /**
   * To be made before anything else is done with the request: a CANCEL reaches only a listener that
   * stands when it comes.
   */
  constructor(request: SipRequest, answer: Answer, onCancel: (headers: Headers) => void) {
    this.request = request
    this.#isReliable = requires100rel(request.headers['require'])
    this.#answer = answer
    request.on('cancel', ({ headers }) => {
      this.#isCancelled = true
      // Who has given way may go.
      if (!this.#successor) onCancel(headers)
    })
  }

  /** Whether somebody else can still take the caller's place. */
  get canGiveWay(): boolean {
    return !this.#isAccepted && !this.#isCancelled && !this.#successor
  }

  /** Whoever answers the call talks to the successor; the caller waits with him until then. */
  giveWayTo(successor: Successor): void {
    this.#successor = successor
  }

  get headers(): Headers {
    return this.request.headers
  }

  /** Undefined: the caller wants the callee to make the offer. */
  get body(): string | undefined {
    return this.request.body || undefined
  }

  /**
   * Whether a dialog can be formed with this caller. The library would send the 200 before it
   * finds out that it cannot.
   */
  get hasUsableContact(): boolean {
    try {
      return this.headers['contact'] !== undefined && !!this.request.getParsedHeader('contact')
    } catch {
      return false
    }
  }

  progress(response: Pick<SipResponse, 'status' | 'reason' | 'body'>, headers: Headers): void {
    this.#successor?.progress(response, headers)
    if (this.#isCancelled) return
    let body = response.body || undefined
    if (this.#isReliable) {
      // RFC 3262 §5: our offer would be answered in the PRACK, and a second answer contradicts the first.
      if (this.body === undefined) return
      if (this.#hasAnswered) body = undefined
      this.#hasAnswered ||= body !== undefined
    }
    // A drachtio-server gives a reliable response its Contact only when it is asked for one like this.
    const required = this.#isReliable ? { Require: '100rel' } : {}
    const options = { headers: { ...headers, ...required }, body }
    respond(this.#answer, response.status, response.reason, options)
  }

  /** Final. After a CANCEL the server has sent 487 already, and nothing more may be said. */
  refuse(status: number, reason: string | undefined, headers: Headers = {}): void {
    this.#successor?.refused(status, reason ?? '')
    if (!this.#isCancelled) respond(this.#answer, status, reason, { headers })
  }

  /** 200. `done` gets the caller's dialog, or undefined when the caller has gone. */
  accept(
    client: SrfClient,
    body: string,
    headers: Headers,
    done: (taken: SrfDialog | Participant | undefined) => void,
  ): void {
    this.#isAccepted = true
    if (this.#successor)
      return this.#successor.accept(client, body, headers, (taken) => {
        done(taken)
        if (taken && !this.#isCancelled) respond(this.#answer, 487, 'Request Terminated')
      })
    if (this.#isCancelled) return done(undefined)
    return client.accept(this.request, this.#answer, { localSdp: body, headers }, done)
  }
}

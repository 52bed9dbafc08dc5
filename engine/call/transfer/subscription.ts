/** What a REFER subscribes to (RFC 3515 §2.4): how the transfer goes on, told in NOTIFYs. */
import type { Leg } from '../legs/leg.ts'

interface News {
  readonly status: number
  readonly reason: string
  readonly isLast: boolean
}

/** Longer than any transfer that rings. */
const EXPIRES_SECONDS = 300

export class Subscription {
  readonly #leg: Leg
  /** Which of the dialog's subscriptions: the number of the REFER. */
  readonly #id: string
  readonly #isSilent: boolean
  #isSending = false
  #isOver = false
  /** What has not been told yet; older news are worth nothing. */
  #waiting: News | undefined
  #last = 0

  constructor(leg: Leg, id: string, isSilent: boolean) {
    this.#leg = leg
    this.#id = id
    this.#isSilent = isSilent
    leg.beforeBye = () => this.end(487, 'Request Terminated')
  }

  /** A provisional status of the new call. */
  tell(status: number, reason: string): void {
    if (this.#isOver || status === this.#last) return
    this.#last = status
    this.#waiting = { status, reason, isLast: false }
    if (!this.#isSending) this.#send()
  }

  /** The final status. At once: a BYE may follow. */
  end(status: number, reason: string): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#leg.beforeBye = undefined
    this.#waiting = { status, reason, isLast: true }
    this.#send()
  }

  /** One NOTIFY at a time, so that none overtakes another; only the last one waits for nobody. */
  #send(): void {
    const news = this.#waiting
    this.#waiting = undefined
    if (news === undefined || this.#isSilent || this.#leg.isOver) return
    this.#isSending = true
    const state = news.isLast ? 'terminated;reason=noresource' : `active;expires=${EXPIRES_SECONDS}`
    const headers = {
      event: `refer;id=${this.#id}`,
      'subscription-state': state,
      'content-type': 'message/sipfrag;version=2.0',
    }
    const body = `SIP/2.0 ${news.status} ${news.reason}\r\n`
    this.#leg.dialog.request({ method: 'NOTIFY', headers, body }, (_error, response) => {
      if (response && response.status < 200) return
      this.#isSending = false
      this.#send()
    })
  }
}

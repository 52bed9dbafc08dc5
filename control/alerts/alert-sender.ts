/** Sends a message by its channel, once: whoever calls it decides what follows from the outcome. */
import type { Clocks } from '../../schema/clock.ts'
import { signatures } from '../../schema/secrets/webhook-signature.ts'
import type { ChannelKind } from '../../schema/contracts/alert-kinds.ts'
import { type Send, type SendResult, WebhookSender } from '../webhooks/sender.ts'
import type { ChannelInForce } from './alert-rule-set.ts'
import { subjectOf, textOf, type AlertMessage } from './alert-message.ts'
import { MailSender, type MailSenderDeps } from './mail-sender.ts'
import type { SendOutcome } from './send-outcome.ts'
import { pagerDutyEvent, slackBody, webhookBody } from './alert-bodies.ts'

export interface AlertSenderDeps extends Clocks {
  readonly post: Send
  readonly close: () => void
  readonly mail: Pick<MailSender, 'send'>
  /** Where people reach the console; undefined: messages have no links. */
  readonly publicUrl: string | undefined
}

/** A sender with connections of its own. */
export function openAlertSender(
  deps: Clocks & MailSenderDeps & Pick<AlertSenderDeps, 'publicUrl'>,
): AlertSender {
  const http = new WebhookSender(deps)
  const mail = new MailSender(deps)
  return new AlertSender({ ...deps, post: http.send, close: () => http.close(), mail })
}

/** The Events API v2 of PagerDuty. */
const PAGERDUTY_URL = 'https://events.pagerduty.com/v2/enqueue'

export class AlertSender {
  readonly #deps: AlertSenderDeps

  constructor(deps: AlertSenderDeps) {
    this.#deps = deps
  }

  /** Closes every connection. */
  close(): void {
    this.#deps.close()
  }

  /** @param key the same in each attempt. */
  async send(channel: ChannelInForce, key: string, message: AlertMessage): Promise<SendOutcome> {
    try {
      return await this.#by[channel.kind](channel, key, message)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      return failed(withoutSecret(reason, channel))
    }
  }

  readonly #by: Readonly<
    Record<
      ChannelKind,
      (channel: ChannelInForce, key: string, message: AlertMessage) => Promise<SendOutcome>
    >
  > = {
    email: async (channel, key, message) => {
      const outcome = await this.#deps.mail.send(channel, {
        key,
        subject: subjectOf(message),
        text: textOf(message, this.#deps.publicUrl),
      })
      if (outcome.kind === 'failed')
        return { ...outcome, reason: withoutSecret(outcome.reason, channel) }
      const { refused } = outcome
      return refused === undefined
        ? outcome
        : { ...outcome, refused: withoutSecret(refused, channel) }
    },
    slack: async (channel, _, message) => {
      if (channel.secret === undefined) return unreadable
      const body = slackBody(subjectOf(message), textOf(message, this.#deps.publicUrl), message)
      return outcomeOf(await this.#post(channel.secret, {}, body), channel)
    },
    pagerduty: async (channel, _, message) => {
      if (channel.secret === undefined) return unreadable
      const body = pagerDutyEvent(channel.secret, message, this.#deps.publicUrl)
      return outcomeOf(await this.#post(channel.url ?? PAGERDUTY_URL, {}, body), channel)
    },
    webhook: async (channel, key, message) => {
      if (channel.secret === undefined || channel.url === null) return unreadable
      const body = webhookBody(message, this.#deps.now(), this.#deps.publicUrl)
      const seconds = Math.floor(this.#deps.now() / 1_000)
      const headers = {
        'webhook-id': key,
        'webhook-timestamp': String(seconds),
        'webhook-signature': signatures([channel.secret], key, seconds, body),
      }
      return outcomeOf(await this.#post(channel.url, headers, body), channel)
    },
  }

  #post(url: string, headers: Readonly<Record<string, string>>, body: string) {
    const json = { 'Content-Type': 'application/json', 'User-Agent': 'Tollgate' }
    return this.#deps.post(url, { ...json, ...headers }, body)
  }
}

const failed = (reason: string, isFinal = false, retryAfterMs = 0): SendOutcome => ({
  kind: 'failed',
  reason: reason.slice(0, 300),
  isFinal,
  retryAfterMs,
})

const unreadable = failed('the secret of the channel is missing: enter it again')

/** These may pass: wrong secrets and addresses are mended by people, and messages wait for them. */
const isFinalStatus = (status: number): boolean => status === 400 || status === 413

function outcomeOf(result: SendResult, channel: ChannelInForce): SendOutcome {
  if (result.kind === 'failed') return failed(withoutSecret(result.reason, channel))
  const { status, excerpt, retryAfterMs = 0 } = result
  if (status >= 200 && status < 300) return { kind: 'sent' }
  // A tenant reads its log: what a server inside says is not for it.
  const said = channel.tenantId === null ? `: ${excerpt.slice(0, 200)}` : ''
  const reason = withoutSecret(`answered ${status}${said}`, channel)
  return failed(reason, isFinalStatus(status), retryAfterMs)
}

/** Errors may repeat what was sent. */
function withoutSecret(text: string, { secret }: ChannelInForce): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return secret === undefined ? line : line.replaceAll(secret, '…')
}

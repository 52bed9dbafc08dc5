/**
 * A thousand events within a minute, while the mail server is dead and the program is killed at
 * random: each is in one message. `ALERTS_SEED=N` takes other times.
 */
import { expect, onTestFinished, test } from 'vitest'
import { Stripe } from 'stripe'
import { mailServer, type ReceivedMail } from '../support/alert-receivers.ts'
import { freePort } from '../support/free-port.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'

const secret = 'whsec_of_the_payment_provider'
const stripe = new Stripe('sk_test_unused')
const EVENTS = 1_000
const KILLS = 4

const sleep = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

test('a thousand events, a dead mail server and a program that is killed at random: none is lost, none told twice', async () => {
  const seed = Number(process.env['ALERTS_SEED'] ?? 20261129)
  const random = seededRandom(seed)
  const smtpPort = await freePort()
  const tollgate = await TollgateProcess.start(
    {
      alert_channels: [
        {
          ...{ name: 'noc', kind: 'email', to: ['noc@example.com'], from: 'pbx@example.com' },
          ...{ smtp_host: '127.0.0.1', smtp_port: smtpPort, smtp_tls: 'none' },
        },
      ],
      alert_rules: [
        { name: 'Payments', on: 'payment_not_credited', channels: ['noc'], group_seconds: 5 },
      ],
    },
    { PAYMENT_WEBHOOK_SECRET: secret, WEBHOOK_PRIVATE_TARGETS: 'allow' },
  )
  onTestFinished(() => tollgate.stop())
  const token = await tollgate.createKey('--name', 'root', '--scopes', '*')
  const ids = Array.from({ length: EVENTS }, (_, n) => `evt_alert_${n}_`)
  const began = Date.now()
  let isSending = true
  const killed = killAtRandom(tollgate, random, () => isSending)
  const waiting = [...ids]
  await Promise.all(
    Array.from({ length: 20 }, async () => {
      for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
        // As a payment provider does, until it is taken.
        while (!(await pay(tollgate, id))) await sleep(100)
        await sleep(200)
      }
    }),
  )
  const sentMs = Date.now() - began
  isSending = false
  const kills = await killed
  expect(kills).toBeGreaterThanOrEqual(2)

  const server = await mailServer({}, smtpPort)
  onTestFinished(() => server.close())
  const aliveAt = Date.now()
  const ask = async (method: string, path: string): Promise<unknown> => {
    const headers = { Authorization: `Bearer ${token}` }
    const url = `http://127.0.0.1:${tollgate.apiPort}/api/v1${path}`
    const { data } = (await (await fetch(url, { method, headers })).json()) as { data: unknown }
    return data
  }
  const told = () => eventsIn(server.mails)
  // A test that arrives sends what waits.
  await expect
    .poll(async () => ask('POST', '/alert-channels/1/test'), { timeout: 20_000 })
    .toEqual({ is_delivered: true, error: null })
  await expect
    .poll(
      async () => {
        await ask('POST', '/alert-channels/1/test')
        return told().size
      },
      { timeout: 60_000, interval: 1_000 },
    )
    .toBe(EVENTS)
  const messages = new Set(server.mails.map(messageId))
  const figures = { seed, sentMs, kills, messages: messages.size, tellingMs: Date.now() - aliveAt }
  process.stdout.write(`alerts: ${JSON.stringify(figures)}\n`)
  // Nothing follows.
  await sleep(3_000)
  const doubled = [...told()].filter(([, inMessages]) => inMessages.size !== 1)
  expect(doubled).toEqual([])
  expect([...told().keys()].toSorted()).toEqual(ids.toSorted())
  const log = (await ask('GET', '/alerts?limit=200')) as { deliveries: { state: string }[] }[]
  expect(log.flatMap(({ deliveries }) => deliveries.map(({ state }) => state))).toEqual(
    Array.from({ length: 200 }, () => 'sent'),
  )
}, 400_000)

/** Resolves with how often it has killed the program, which serves again then. */
async function killAtRandom(
  tollgate: TollgateProcess,
  random: () => number,
  isWanted: () => boolean,
): Promise<number> {
  let kills = 0
  while (kills < KILLS && isWanted()) {
    await sleep(1_500 + random() * 4_000)
    if (!isWanted()) break
    await tollgate.kill()
    kills += 1
    await tollgate.restart()
  }
  return kills
}

/** A payment of nobody: it cannot be credited. */
async function pay(tollgate: TollgateProcess, id: string): Promise<boolean> {
  const payload = JSON.stringify({
    ...{ id, object: 'event', created: 1_700_000_000, type: 'checkout.session.completed' },
    data: {
      object: {
        ...{ id: `cs_${id}`, object: 'checkout.session', payment_intent: `pi_${id}` },
        ...{ payment_status: 'paid', amount_total: 2_500, currency: 'usd', metadata: {} },
      },
    },
  })
  const header = stripe.webhooks.generateTestHeaderString({ payload, secret })
  const url = `http://127.0.0.1:${tollgate.apiPort}/api/client/payments/webhook`
  const headers = { 'stripe-signature': header, 'Content-Type': 'application/json' }
  try {
    return (await fetch(url, { method: 'POST', headers, body: payload })).ok
  } catch {
    return false
  }
}

const messageId = ({ text }: ReceivedMail): string => /^Message-ID: (\S+)/im.exec(text)?.[1] ?? ''

/** The events of all mails, each with the messages that name it. */
function eventsIn(mails: readonly ReceivedMail[]): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>()
  for (const mail of mails) {
    const text = mail.text.replaceAll('=\r\n', '')
    for (const [id] of text.slice(text.indexOf('\r\n\r\n')).matchAll(/evt_alert_\d+_/g))
      found.set(id, (found.get(id) ?? new Set()).add(messageId(mail)))
  }
  return found
}

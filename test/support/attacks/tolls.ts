/** Calls charged to another customer, or charged too little. */
import { setTimeout as sleep } from 'node:timers/promises'
import { DigestPhone } from '../digest-phone.ts'
import {
  type Attack,
  domain,
  nameFor,
  poor,
  repeatUntil,
  rich,
  victim,
  type World,
} from './world.ts'

const pick = <T>(random: () => number, values: readonly [T, ...T[]]): T =>
  values[Math.floor(random() * values.length)] ?? values[0]

/** A number in unusual notation: separators, escapes, tel:, parameters. */
function spelled(number: string, random: () => number, port: number): string {
  const separators = ['', '', '', '-', '.', '(', ')', '%2D', '%20'] as const
  const text = number
    .split('')
    .map((digit) => {
      const shown = random() < 0.2 ? `%3${digit}` : digit
      return shown + pick(random, separators)
    })
    .join('')
  const plus = random() < 0.3 ? '+' : ''
  const isTel = random() < 0.2
  if (isTel) return `tel:${plus}${text.replaceAll('%20', '-')}`
  const parameter = pick(random, ['', ';user=phone', ';phone-context=+1'] as const)
  return `sip:${plus}${text}${pick(random, ['', ';isub=1'] as const)}@127.0.0.1:${port}${parameter}`
}

const isOut = (world: World, prefix: string): boolean =>
  world.dialledOut.some((number) => number.startsWith(prefix))

const spellings: Attack = {
  name: 'toll spellings',
  guarantee: 'no spelling of a number is cheaper, or more allowed, than its plain form',
  async run(world, until) {
    const { call, fromNode, tollgate, random } = world
    const breaches: string[] = []
    const rounds = await repeatUntil(until, async () => {
      for (const [prefix, payer] of [['1976', rich] as const, ['1900', poor] as const]) {
        const number = `${prefix}555${1_000 + Math.floor(random() * 9_000)}`
        const uri = spelled(number, random, tollgate.sipPort)
        const status = await call(fromNode, uri, payer)
        if ((status > 0 && status < 300) || isOut(world, prefix)) breaches.push(`${uri}: ${status}`)
        world.dialledOut.length = 0
      }
    })
    return { tried: `${rounds * 2} spellings of blocked and unaffordable numbers`, breaches }
  },
}

/** What routes and exit codes take off the front of a number. */
const fronts = ['00', '0000', '000000', '+00', '+0000', '9', '900', '90000', '0', '000'] as const

const rewritten: Attack = {
  name: 'rewritten numbers',
  guarantee: 'what routes make of a dialled number is priced and blocked as what the gateway gets',
  async run(world, until) {
    const { call, fromNode, random } = world
    const breaches: string[] = []
    const rounds = await repeatUntil(until, async () => {
      for (const front of fronts)
        for (const [prefix, payer] of [['1976', rich] as const, ['1900', poor] as const]) {
          const number = `${front}${prefix}555${1_000 + Math.floor(random() * 9_000)}`
          const status = await call(fromNode, number, payer)
          // One zero is no exit code: behind it stands another number.
          const sent = world.dialledOut.filter((each) =>
            each.replace(/^(?:00)+/, '').startsWith(prefix),
          )
          if (sent.length > 0) breaches.push(`${number}: ${status}, sent ${sent.join()}`)
          world.dialledOut.length = 0
        }
    })
    return { tried: `${rounds * fronts.length * 2} numbers behind codes of routes`, breaches }
  },
}

/** Ways to write the gateway's own address. */
const disguises = (port: string): string[] => [
  `127.0.0.1:${port}`,
  `localhost:${port}`,
  `LOCALHOST:${port}`,
  `127.0.0.1:${port};transport=udp`,
  `[::ffff:127.0.0.1]:${port}`,
  `127.0.0.1:0${port}`,
  `localhost.:${port}`,
]

const gateways: Attack = {
  name: 'free gateways',
  guarantee: "an agent that points at a carrier's gateway gets no call out of it",
  async run(world, until) {
    const { api, tenantKey, tollgate, gateway } = world
    const [, port = ''] = gateway.split(':')
    const breaches: string[] = []
    let tries = 0
    const account = { user: '101', domain, password: 'secret-101' }
    const phone = await DigestPhone.open(tollgate.listener(), account)
    await repeatUntil(until, async () => {
      for (const host of disguises(port)) {
        tries += 1
        const extension = String(7_000 + tries)
        const made = await api('POST', '/api/v1/telephony/ai-agents', tenantKey, {
          name: `agent ${nameFor(`${tries}`)}`,
          extension,
          max_calls: 1,
          is_active: true,
          sip_uri: `sip:19005551234@${host}`,
        })
        if (made.status !== 201) continue
        const leg = await phone.call(extension)
        const answer = await phone.answerTo(leg)
        phone.peer.learn(leg, answer)
        phone.peer.request('ACK', leg)
        if (answer.status < 300) phone.peer.request('BYE', leg)
        if (isOut(world, '1900')) breaches.push(`${host}: ${answer.status}`)
        world.dialledOut.length = 0
      }
    })
    phone.close()
    return { tried: `${tries} agents at a gateway`, breaches }
  },
}

const zeroSeconds: Attack = {
  name: 'zero-second calls',
  guarantee: 'every answered call is billed a second at least, and costs its first increment',
  async run({ call, trusted, tollgate }, until) {
    let answered = 0
    await repeatUntil(until, async () => {
      if ((await call(trusted, '15559990000', rich)) === 200) answered += 1
    })
    await tollgate.waitForCalls(1)
    await sleep(300)
    const free = tollgate.query<{ call_id: string; billsec: number; cost_micros: number }>(
      `SELECT call_id, billsec, cost_micros FROM cdr
       WHERE disposition = 'ANSWERED' AND customer_id IS NOT NULL AND (billsec < 1 OR cost_micros = 0)`,
    )
    const breaches = free.map((row) => JSON.stringify(row))
    if (answered === 0) breaches.push('no call was answered')
    return { tried: `${answered} calls that ended with their ACK`, breaches }
  },
}

/** Headers by which a caller may claim another identity. */
const claims = [
  'P-Asserted-Identity',
  'P-Preferred-Identity',
  'Remote-Party-ID',
  'Diversion',
  'History-Info',
  'Referred-By',
  'P-Charge-Info',
  'X-Customer',
  'X-Tollgate-Customer',
]

const spoofedPayers: Attack = {
  name: 'spoofed payers',
  guarantee: 'a carrier without a customer cannot choose the payer by its From',
  async run({ call, fromCarrier, tollgate }, until) {
    const before = tollgate.wallet('victim')
    const shapes = [
      victim,
      `"${victim}" <sip:${victim}@acme.example;user=phone>`,
      `<tel:+${victim}>`,
      `<sip:anonymous@anonymous.invalid>`,
    ]
    let tries = 0
    await repeatUntil(until, async () => {
      for (const from of shapes) {
        tries += 1
        const headers = claims.map((name) => `${name}: <sip:${victim}@acme.example>`)
        await call(fromCarrier, '15559990000', from, { headers })
      }
    })
    await sleep(300)
    const after = tollgate.wallet('victim')
    const breaches = after.debits === before.debits ? [] : [JSON.stringify({ before, after })]
    return { tried: `${tries} calls of a carrier in the name of a customer`, breaches }
  },
}

const oneWallet: Attack = {
  name: 'simultaneous calls on one wallet',
  guarantee: 'however many calls at once, a wallet never goes below zero, and equals its ledger',
  async run({ call, trusted, tollgate }, until) {
    let calls = 0
    const breaches: string[] = []
    const check = (): void => {
      const { balance, ledger } = tollgate.wallet('poor')
      if (balance < 0 || balance !== ledger) breaches.push(JSON.stringify({ balance, ledger }))
    }
    await repeatUntil(until, async () => {
      const statuses = await Promise.all(
        Array.from({ length: 50 }, () => call(trusted, '15559990000', poor)),
      )
      calls += statuses.length
      await sleep(50)
      check()
    })
    return { tried: `${calls} calls, fifty at a time`, breaches }
  },
}

export const tolls: readonly Attack[] = [
  spellings,
  rewritten,
  gateways,
  zeroSeconds,
  spoofedPayers,
  oneWallet,
]

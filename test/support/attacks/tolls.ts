/** Calls charged to another customer, or charged too little. */
import { type Attack, poor, repeatUntil, rich, type World } from './world.ts'

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

/** Digits that routes and exit codes take off the front of a number. */
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
      check()
    })
    return { tried: `${calls} calls, fifty at a time`, breaches }
  },
}

export const tolls: readonly Attack[] = [spellings, rewritten, oneWallet]

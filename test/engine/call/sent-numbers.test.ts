// A call is priced, blocked and guarded by what its gateways get, whatever routes and carriers make
// of the dialled number.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openDoors, type Verdict } from '../../support/number-doors.ts'
import { escapedSpellings } from '../../support/number-spellings.ts'

/** No two cost the same; no other prefix begins like the blocked ones. */
const rates = ['', '1', '1900', '44', '4490', '49', '9', '0', '00', '7'].map((prefix, index) => ({
  rate_plan: 'retail',
  prefix,
  rate_per_minute: `${(index * 7) % 10}.${index + 1}`,
}))
const blockedRate = { rate_plan: 'retail', prefix: '1976', rate_per_minute: '0', blocked: true }
const blockingRoute = { name: 'block', prefix: '1809', mode: 'block' }

const digits = (least: number, most: number) =>
  fc
    .array(fc.constantFrom('0', '1', '2', '3', '4', '5', '6', '7', '8', '9'), {
      minLength: least,
      maxLength: most,
    })
    .map((each) => each.join(''))

const route = fc.record({
  prefix: fc.constantFrom('', '0', '00', '9', '44', '7'),
  strip: fc.nat(4),
  prepend: fc.constantFrom('', '', '1', '44', '0', '00', '0049', '7777', '+', '1976', '1809'),
  carrier: fc.constantFrom('plain', 'by code', 'national'),
  mode: fc.constantFrom('static', 'lcr'),
})
const carriers = [
  { name: 'plain', rules: [] },
  { name: 'by code', rules: [{ match: '^\\+', replace: '00' }] },
  { name: 'national', rules: [{ match: '^([2-9][0-9]{9})$', replace: '1$1' }] },
].map(({ name, rules }, index) => ({
  name,
  direction: 'out',
  gateways: [{ host: `203.0.113.${index + 1}` }],
  number_rules: { out: rules },
  rate_plan: 'retail',
}))

const number = fc
  .tuple(
    fc.constantFrom('', '+', '00', '0000', '9', '900', '0', '44', '7'),
    fc.constantFrom('1900', '1976', '1809', '900', '49', '44', ''),
    digits(5, 8),
  )
  .map((parts) => parts.join(''))

const installation = fc.record({
  routes: fc.array(route, { minLength: 1, maxLength: 4 }),
  exitCodes: fc.constantFrom(['00'], undefined),
  braked: fc.constantFrom('1900', '44', '7777'),
  calls: fc.array(
    number.chain((plain) => fc.tuple(fc.constant(plain), escapedSpellings(plain))),
    { minLength: 4, maxLength: 6 },
  ),
})

/** `+` in place of exit codes, as gateways read `00`. */
function readByGateway(sent: string): string {
  const [, rest] = /^\+?(?:00)+([1-9][0-9]{4}[0-9]*)$/.exec(sent) ?? []
  return rest === undefined ? sent : `+${rest}`
}

const plain = (text: string): string => text.replace('+', '')

/** Numbers that gateways get; undefined: the call goes to none. */
const sentOf = ({ direction, sent }: Verdict): readonly string[] | undefined =>
  direction === 'outbound'
    ? (sent as [string][]).map(([uri]) => readByGateway(/^sip:([^@]*)@/.exec(uri)?.[1] ?? ''))
    : undefined

test('the price, block and guard of a call are those of the numbers in the INVITEs for gateways', async () => {
  let priced = 0
  const run = fc.asyncProperty(installation, async (given) => {
    const { exitCodes } = given
    const doors = await openDoors(exitCodes, {
      rates: [...rates, blockedRate],
      carriers,
      outbound_routes: [
        ...given.routes.map((each, index) => ({ ...each, name: `route ${index}` })),
        blockingRoute,
      ],
    })
    const { 'INVITE of a phone': phone } = doors.sip
    const costOf = async (asked: string): Promise<number> => {
      const { data } = await doors.text['look-up of a price'](asked)
      const { cost } = data as { readonly cost: number | null }
      expect([asked, cost]).toEqual([asked, expect.any(Number)])
      return Math.round((cost ?? 0) * 1_000_000)
    }
    const outside: [string, readonly string[]][] = []
    for (const [dialled, spelling] of given.calls) {
      const verdict = await phone(spelling)
      const sent = sentOf(verdict)
      if (sent === undefined) continue
      outside.push([spelling, sent])
      const shown = String(verdict['calledNumber'])
      // In front of the whole number may stand what a carrier wants there.
      const isBehind = sent.some((each) => plain(each).endsWith(plain(shown)))
      const costs = await Promise.all([...sent, ...(isBehind ? [shown] : [])].map(costOf))
      const result = { dialled, sent, cost: verdict['costMicros'] }
      expect(result).toEqual({ ...result, cost: Math.max(...costs) })
      expect(sent.filter((each) => /^(?:1976|1809)/.test(plain(each)))).toEqual([])
      expect((await doors.simulated(shown)).payment).toMatchObject({
        tariff: { prefix: verdict['ratePrefix'] },
      })
      priced += 1
    }
    await doors.brake(given.braked)
    for (const [spelling, sent] of outside) {
      if (!sent.some((each) => plain(each).startsWith(given.braked))) continue
      expect(await phone(spelling)).toEqual({ refused: 403, code: 'spend_guard' })
    }
  })
  await fc.assert(run, { numRuns: 20 })
  expect(priced).toBeGreaterThan(0)
}, 30_000)

test('an exit code that is dialled twice gets around neither price nor block', async () => {
  const doors = await openDoors(['00'], {
    outbound_routes: [
      { name: 'abroad', prefix: '00', strip: 2, carrier: 'north' },
      { name: 'none', prefix: '1809', mode: 'block' },
    ],
  })
  const { 'INVITE of a phone': phone } = doors.sip
  for (const code of ['00', '0000', '000000', '+00', '+0000'].map((each) =>
    each.replace('+', '%2B'),
  )) {
    const verdict = await phone(`${code}19005551234`)
    expect([code, verdict]).toMatchObject([code, { ratePrefix: '1900', costMicros: 8_000_000 }])
    const blocked = { code: 'destination_blocked' }
    for (const prefix of ['1976', '1809'])
      expect([code, await phone(`${code}${prefix}5551234`)]).toMatchObject([code, blocked])
  }
})

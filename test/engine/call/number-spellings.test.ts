// No spelling of a number is cheaper or more allowed than its plain form, by whatever door it comes
// in.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openDoors, type Verdict } from '../../support/number-doors.ts'
import {
  disfigured,
  escapedSpellings,
  spellings,
  telephoneNumber,
} from '../../support/number-spellings.ts'

const doors = await openDoors()

const number = fc.oneof(
  telephoneNumber,
  fc.constantFrom('112', '+112', '102', '19005551234', '+19765551234', '18095551234', '4930123'),
  fc.constantFrom('+12025550100', '12025550199', '101'),
)

/** A number, and another way to write it. */
const written = (spell: (plain: string) => fc.Arbitrary<string>) =>
  number.chain((plain) => fc.tuple(fc.constant(plain), spell(plain)))

const asEscaped = (plain: string): string => plain.replaceAll('#', '%23')

type Door = (text: string) => Promise<Verdict>
type Spell = (plain: string) => fc.Arbitrary<string>
const asIs = (plain: string): string => plain
const sip = Object.entries<Door>(doors.sip).map(
  ([name, door]): [string, Door, Spell, (plain: string) => string] => [
    name,
    door,
    escapedSpellings,
    asEscaped,
  ],
)
const text = Object.entries<Door>(doors.text).map(
  ([name, door]): [string, Door, Spell, (plain: string) => string] => [name, door, spellings, asIs],
)

test.each([...sip, ...text])('%s: a spelling is its number', async (_, door, spell, plainly) => {
  await fc.assert(
    fc.asyncProperty(written(spell), async ([plain, spelling]) => {
      expect(await door(spelling)).toEqual(await door(plainly(plain)))
    }),
    { numRuns: 15 },
  )
})

/** Refused whatever the plain form is; a name at the OCS has the price of its digits. */
async function expectNoGain(verdict: Verdict, plain: Promise<Verdict>): Promise<void> {
  if (verdict['direction'] === 'inbound') expect(verdict['sent']).toEqual([toPbx])
  else if (!('refused' in verdict)) expect(verdict).toEqual(await plain)
}

/** A trunk may call a name: by the price of the empty prefix, and never at a gateway. */
const toPbx = [expect.stringContaining('@127.0.0.1:5060'), expect.anything(), expect.anything()]

const calledBy = sip.filter(([name]) => !/^(?:From|P-Asserted)/.test(name))

test.each([...calledBy, ...text])(
  '%s: what only looks like a number gains nothing',
  async (_, door, _spell, plainly) => {
    await fc.assert(
      fc.asyncProperty(written(disfigured), async ([plain, said]) => {
        await expectNoGain(await door(said), door(plainly(plain)))
      }),
      { numRuns: 15 },
    )
  },
)

test('a caller that is no number spends the wallet of no number', async () => {
  const { From: from, 'P-Asserted-Identity': asserted } = doors.sip
  const own = await from('12025550100')
  expect(own).toMatchObject({ customerId: 1, costMicros: 200_000 })
  await fc.assert(
    fc.asyncProperty(disfigured('12025550100'), async (text) => {
      expect(await from(text)).toMatchObject({ refused: 402, code: 'unknown_caller' })
      expect(await asserted(text)).toMatchObject({ refused: 402, code: 'unknown_caller' })
    }),
    { examples: [['%2B%2B12025550100'], ['++12025550100'], ['%2B+2025550100']] },
  )
})

test('a trunk calls a name at the price of the empty prefix; it reaches a set, never a gateway', async () => {
  const trunk = doors.sip['INVITE of a trunk']
  for (const name of ['service', 'alice', '1900FLOWERS', '1-900-FLOWERS', '1976x', '112x'])
    expect([name, await trunk(name)]).toMatchObject([
      name,
      { customerId: 2, ratePrefix: '', costMicros: 500_000, direction: 'inbound', sent: [toPbx] },
    ])
  expect(await trunk('1+900')).toEqual({ refused: 484, code: 'malformed_number' })
  expect(await trunk('1-900-555')).toMatchObject({ ratePrefix: '1900' })
})

test('the doors tell prices, blocks and routes apart, so that the properties mean something', async () => {
  const phone = doors.sip['INVITE of a phone']
  const from = '"101" <sip:101@localhost>'
  const premium = { costMicros: 8_000_000, ratePrefix: '1900', direction: 'outbound' }
  expect(await phone('1-900-555')).toMatchObject({
    ...premium,
    sent: [
      ['sip:1900555@203.0.113.2:5060;transport=udp', '<sip:1900555@203.0.113.2:5060>', from],
      ['sip:1900555@203.0.113.1:5060;transport=udp', '<sip:1900555@203.0.113.1:5060>', from],
    ],
  })
  expect(await phone('1(976)%20555')).toEqual({ refused: 402, code: 'destination_blocked' })
  expect(await phone('1.809.555')).toEqual({ refused: 403, code: 'destination_blocked' })
  expect(await phone('1-1-2')).toMatchObject({ isFree: true, direction: 'outbound' })
  expect(await phone('1-02')).toMatchObject({ isFree: true, sent: ['sip:102@acme.example'] })
  expect(await phone('1+900')).toEqual({ refused: 484, code: 'malformed_number' })
  expect(await phone('alice')).toEqual({ refused: 404, code: 'unknown_name' })
  expect(await doors.sip['P-Called-Party-ID']('1-900')).toMatchObject({ calledNumber: '1900' })
  const lookup = await doors.text['look-up of a price']('1-900-555')
  expect(lookup).toMatchObject({ data: { prefix: '1900', cost: 8 } })
  expect(await doors.sip['callee of the OCS']('1-900')).toMatchObject({ rate_prefix: '1900' })
})

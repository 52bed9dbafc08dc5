// A number that is dialled with an exit code is the number with `+`, by whatever door it comes in.
import { expect, test } from 'vitest'
import { openDoors, type Verdict } from '../../support/number-doors.ts'
import { openResources } from '../../support/resources.ts'
import { readColumn } from '../../support/stored.ts'

const doors = await openDoors(['0011', '011', '810', '00'])
const { 'INVITE of a phone': phone, 'INVITE of a node': node } = doors.sip

/** `+<number>`, as people of several places dial it. */
const dialled = (number: string): readonly string[] =>
  ['00', '011', '0011', '810', '+00', '+011', '0-0-', '(011) '].map((code) => code + number)

const atDoor = (text: string): string => text.replaceAll(' ', '%20').replace('+', '%2B')

/** The cost of a call, and who pays. */
const charged = ({ customerId, ratePrefix, costMicros, refused, code }: Verdict) => ({
  customerId,
  ratePrefix,
  costMicros,
  refused,
  code,
})

test.each(['19005551234', '4930123456', '17005551234'])(
  'a call to %s has the price, the route and the record of the number',
  async (number) => {
    const plain = await phone(`+${number}`)
    expect(plain).toMatchObject({ customerId: 1, calledNumber: `+${number}` })
    for (const spelling of dialled(number)) {
      expect([spelling, await phone(atDoor(spelling))]).toEqual([spelling, plain])
      expect([spelling, await node(atDoor(spelling))]).toEqual([spelling, await node(`+${number}`)])
    }
  },
)

test.each(['REFER', 'Contact of a 302', 'callee of the OCS'] as const)(
  '%s: the price is that of the number',
  async (name) => {
    const door = doors.sip[name]
    for (const number of ['19005551234', '19765551234', '18095551234'])
      for (const spelling of dialled(number)) {
        const charge = charged(await door(atDoor(spelling)))
        expect([spelling, charge]).toEqual([spelling, charged(await door(`+${number}`))])
      }
  },
)

test('a blocked price and a route that blocks are not got around', async () => {
  for (const spelling of dialled('19765551234'))
    expect(await phone(atDoor(spelling))).toEqual({ refused: 402, code: 'destination_blocked' })
  for (const spelling of dialled('18095551234'))
    expect(await phone(atDoor(spelling))).toEqual({ refused: 403, code: 'destination_blocked' })
})

test('the look-up of a price and simulate_call tell what the call would be', async () => {
  const lookUp = doors.text['look-up of a price']
  for (const number of ['19005551234', '19765551234', '18095551234'])
    for (const spelling of dialled(number)) {
      expect(await doors.simulated(spelling)).toEqual(await doors.simulated(`+${number}`))
      // It repeats what was asked.
      const asked = { number: expect.anything() as unknown }
      const { data } = await lookUp(`+${number}`)
      expect((await lookUp(spelling))['data']).toEqual({ ...Object(data), ...asked })
    }
})

test('a spend guard covers the number, however it and its own prefix are written', async () => {
  await doors.brake('011 44')
  for (const spelling of ['+442071234567', ...dialled('442071234567')]) {
    expect(await phone(atDoor(spelling))).toEqual({ refused: 403, code: 'spend_guard' })
    expect((await doors.simulated(spelling)).verdict).toMatchObject({ code: 'spend_guard' })
  }
  expect(await phone('%2B432071234567')).not.toHaveProperty('refused')
})

test('what a node reports is recorded under the number, so that summaries by prefix have it', async () => {
  const { call, store, flushCalls } = await openResources({ exitCodes: ['00'] })
  const callees = ['00442071234567', '+442071234567']
  for (const [index, callee] of callees.entries()) {
    const report = { call_uuid: `call-${index}`, caller: '4930100', callee, billsec: 5 }
    const answer = call('POST', '/api/ocs/cdr', report)
    // It waits for the group commit.
    const flushing = setInterval(flushCalls, 5)
    expect((await answer.finally(() => clearInterval(flushing))).status).toBe(200)
  }
  const numbers = await readColumn(store, 'SELECT DISTINCT destination_number FROM cdr')
  expect(numbers).toEqual(['+442071234567'])
})

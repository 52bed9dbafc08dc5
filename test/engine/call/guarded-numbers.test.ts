// A spend guard is not got around by any door or spelling.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openDoors } from '../../support/number-doors.ts'
import { escapedSpellings } from '../../support/number-spellings.ts'

const doors = await openDoors()
await doors.brake('1900')

const paid = Object.entries(doors.sip).filter(([name]) =>
  ['INVITE of a phone', 'REFER', 'Contact of a 302', 'callee of the OCS'].includes(name),
)
const front = fc.constantFrom('', '+', '00', '000', '0')

test.each(paid)('%s: no spelling gets around a spend guard', async (_, door) => {
  expect(await door('19005551234')).toEqual({ refused: 403, code: 'spend_guard' })
  const spelt = fc.tuple(front, escapedSpellings('19005551234'))
  await fc.assert(
    fc.asyncProperty(spelt, async ([before, number]) => {
      const verdict = await door(before + number.replace(/^\+/, ''))
      expect(verdict).toHaveProperty('refused')
    }),
    { numRuns: 30 },
  )
  expect(await door('18005551234')).not.toHaveProperty('refused')
})

test.each(paid)('%s: no exit code gets around a spend guard', async (_, door) => {
  for (const code of ['00', '011', '0011', '810', '+011', '0011-', '0 011', '*31%23011', '00 00'])
    for (const number of ['19005551234', '19005551234;phone-context=+44'])
      expect([code, await door(code.replaceAll(' ', '%20') + number)]).toEqual([
        code,
        { refused: 403, code: 'spend_guard' },
      ])
})

test('a number that routes and carriers complete to a guarded one is refused, and no other', async () => {
  const { 'INVITE of a phone': phone } = doors.sip
  const braked = { refused: 403, code: 'spend_guard' }
  // National; behind a digit for an outside line, also with an exit code.
  for (const number of ['9005551234', '919005551234', '9019005551234', '901119005551234'])
    expect([number, await phone(number)]).toEqual([number, braked])
  expect((await doors.simulated('9005551234')).verdict).toMatchObject({ code: 'spend_guard' })
  for (const number of ['9105551234', '918005551234', '+9005551234'])
    expect([number, await phone(number)]).not.toEqual([number, braked])
})

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { didYouMean } from '../../../schema/rules/names.ts'

const names = ['acme-main', 'acme-spare', 'Globex', 'sip:10.0.0.1:5060;transport=udp']

test.each([
  ['acme-mian', ' Did you mean "acme-main"?'],
  ['ACME-MAIN', ' Did you mean "acme-main"?'],
  ['globx', ' Did you mean "Globex"?'],
  ['acme', ' Did you mean "acme-main" or "acme-spare"?'],
  ['the acme-main account', ' Did you mean "acme-main"?'],
  ['sip:10.0.0.2:5060;transport=udp', ' Did you mean "sip:10.0.0.1:5060;transport=udp"?'],
  ['initech', ''],
  ['', ''],
  ['a', ''],
])('for %s: %s', (wrong, offer) => {
  expect(didYouMean(wrong, names)).toBe(offer)
})

test('offers one to three of the given names, quoted, for any text', () => {
  const text = fc.string({ unit: 'binary', maxLength: 70 })
  const near = fc.array(fc.oneof(text, fc.constantFrom('acme', 'acme-main', '"quoted"\n')))
  fc.assert(
    fc.property(fc.oneof(text, fc.constantFrom('acme', 'quoted')), near, (wrong, known) => {
      const offer = didYouMean(wrong, known)
      const offered = [...offer.matchAll(/"(?:[^"\\]|\\.)*"/g)].map(([name]): unknown =>
        JSON.parse(name),
      )
      for (const name of offered) expect(known).toContain(name)
      expect(offered.length <= 3 && offered.length > 0 === (offer !== '')).toBe(true)
    }),
  )
})

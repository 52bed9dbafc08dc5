import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ranked, rankOf } from '../../../control/search/rank.ts'

const hit = (title: string, ...beside: string[]) => ({ title, beside })

test('the name itself comes first, then what begins so, then words, parts, and what stands beside', () => {
  const found = [
    hit('Old Macmeric'),
    hit('Berlin', 'acme.example'),
    hit('Great Acme Works'),
    hit('ACME Berlin'),
    hit('Zeta', 'acme'),
    hit('Acme'),
    hit('Acmeria'),
  ]
  expect(ranked(found, 'acme').map(({ title }) => title)).toEqual([
    'Acme',
    'Zeta',
    'Acmeria',
    'ACME Berlin',
    'Great Acme Works',
    'Old Macmeric',
    'Berlin',
  ])
})

test('a number is the same with a plus and without', () => {
  expect(rankOf(hit('+4930100'), '4930100')).toBe(rankOf(hit('4930100'), '+4930100'))
  expect(rankOf(hit('+4930100'), '4930')).toBeLessThan(rankOf(hit('+14930'), '4930'))
})

test('the order depends on nothing but what was found', () => {
  const texts = fc.string({ unit: fc.constantFrom('a', 'b', 'A', ' ', '+', '1'), maxLength: 6 })
  fc.assert(
    fc.property(fc.array(texts), texts, fc.nat(), (titles, wanted, turn) => {
      const found = titles.map((title) => hit(title))
      const turned = [
        ...found.slice(turn % (found.length + 1)),
        ...found.slice(0, turn % (found.length + 1)),
      ]
      expect(ranked(turned, wanted)).toEqual(ranked(found, wanted))
    }),
  )
})

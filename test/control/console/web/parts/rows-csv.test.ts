/** Chosen rows as a file: nothing in it runs in a spreadsheet, and each field has its column. */
import { expect, test } from 'vitest'
import { between } from '../../../../../control/console/web/parts/row-keys.ts'
import { csvOf } from '../../../../../control/console/web/parts/rows-csv.ts'

test('each field of any row is a column, and lists and objects are texts', () => {
  const rows = [
    { id: 1, name: 'a,b', numbers: ['1', '2'] },
    { id: 2, name: 'say "so"', media: { codecs: ['PCMU'] }, plan: null },
  ]
  expect(csvOf(rows)).toBe(
    'id,name,numbers,media,plan\r\n' +
      '1,"a,b",1 2,,\r\n' +
      '2,"say ""so""",,"{""codecs"":[""PCMU""]}",\r\n',
  )
})

test('a text that a spreadsheet would run is prefixed, and a number is not', () => {
  const names = ['=1+1', ' @sum', '+49301', '-1.50', '+SUM(A1)', '\tx', '－cmd']
  const cells = csvOf(names.map((name) => ({ name })))
    .split('\r\n')
    .slice(1, -1)
  expect(cells).toEqual(["'=1+1", "' @sum", '+49301', '-1.50', "'+SUM(A1)", "'\tx", "'－cmd"])
})

test('what some spreadsheets take as the beginning of a cell runs no more than its own', () => {
  const names = ['a;=1+1', 'a; @b', 'a\t=b', 'a\n-b', 'a;b', 'a;-1.50;c']
  const text = csvOf(names.map((name) => ({ name })))
  expect(text).toBe("name\r\na;'=1+1\r\na;' @b\r\na\t'=b\r\n\"a\n'-b\"\r\na;b\r\na;'-1.50;c\r\n")
})

test('a range goes in both directions, and is one row where its beginning is gone', () => {
  const shown = ['a', 'b', 'c', 'd']
  expect(between(shown, 'b', 'd')).toEqual(['b', 'c', 'd'])
  expect(between(shown, 'd', 'b')).toEqual(['b', 'c', 'd'])
  expect(between(shown, 'x', 'b')).toEqual(['b'])
  expect(between(shown, undefined, 'c')).toEqual(['c'])
})

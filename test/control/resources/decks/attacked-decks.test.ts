/** Decks that are wrong, or made to do harm: nothing but what is written is ever stored. */
import { expect, test } from 'vitest'
import { openResources } from '../../../support/resources.ts'
import { archive, workbook } from '../../../support/workbook.ts'

const bytes = { headers: { 'content-type': 'application/octet-stream' } }

interface ShownRate {
  readonly prefix: string
  readonly rate_per_minute_exact: string
  readonly description: string | null
}

async function withPlan() {
  const control = await openResources()
  await control.call('POST', '/rate-plans', { name: 'cost', currency: 'USD' })
  const send = (step: string, deck: string | Buffer, mapping?: object, query: object = {}) => {
    const words = new URLSearchParams({
      rate_plan: 'cost',
      ...query,
      ...(mapping !== undefined && { mapping: JSON.stringify(mapping) }),
    })
    return control.call('POST', `/rates/decks${step}?${words.toString()}`, deck, bytes)
  }
  const rates = async () =>
    (await control.call('GET', '/rates?rate_plan=cost&limit=200')).data<ShownRate[]>()
  return { ...control, send, rates }
}

const code = { columns: { prefix: 'Code', rate_per_minute: 'Rate' } }
const dated = { columns: { ...code.columns, effective_from: 'From' } }
const described = { columns: { ...code.columns, description: 'Name' } }

test.each([
  // The zero would price the whole country.
  ['792,0', { country_code: '44', trunk_zero: 'drop' }, 'is a decimal number'],
  ['44792,00', {}, 'is a decimal number'],
  ['447,4', {}, 'do not begin alike'],
  ['4474/45', {}, 'do not begin alike'],
  ['39347/38/39', {}, 'do not begin alike'],
  ['4474/44', {}, 'do not begin alike'],
  ['447-449, 45', {}, 'do not begin alike'],
  ['/', {}, 'is not a prefix'],
  [',;', {}, 'is not a prefix'],
])('the cell %j has two readings, or none: it is refused with %j', async (cell, said, message) => {
  const { send, rates } = await withPlan()
  const answer = await send('', `Code\tRate\n49\t0.1\n${cell}\t0.2\n`, { ...code, ...said })
  expect(answer.body).toMatchObject({
    details: [{ path: 'lines.3.prefix', message: expect.stringContaining(message) }],
  })
  expect(await rates()).toEqual([])
})

test.each([
  ['44, 447, 4420', {}, ['44', '447', '4420']],
  ['44207, 4420', {}, ['44207', '4420']],
  ['20, 121, 7', { country_code: '44' }, ['4420', '44121', '447']],
  ['1195-1210', {}, ['1195', '1196', '1197', '1198', '1199', '120', '1210']],
  ['81049', { exit_code: '810' }, ['49']],
  ['81049, 81044', { exit_code: '810' }, undefined],
  ['81049, 810491', { exit_code: '810' }, ['49', '491']],
])('the cell %j with %j is the prefixes %j', async (cell, said, expected) => {
  const { send, rates } = await withPlan()
  await send('', `Code\tRate\n${cell}\t0.2\n`, { ...code, ...said })
  const prefixes = (await rates()).map(({ prefix }) => prefix)
  expect(prefixes.toSorted()).toEqual((expected ?? ['44', '49']).toSorted())
})

test.each([
  ['0026-03-02', {}, 'is not of a year from 2000'],
  ['0026-03-02T00:00:00Z', {}, 'is not of a year from 2000'],
  ['02.03.0026', { date_format: 'DD.MM.YYYY' }, 'is not of a year from 2000'],
  ['2206-03-02', {}, 'is not of a year from 2000'],
  ['30.02.2026', { date_format: 'DD.MM.YYYY' }, 'is not a day of the calendar'],
  ['2026-02-29', {}, 'is not a day of the calendar'],
  ['02/03/26', {}, 'name date_format'],
  // November in Finnish, of which only the first letters are those of March.
  ['3 marraskuu 2026', { date_format: 'D MMM YYYY' }, 'is not a day of the calendar'],
])('the date %j with %j is refused', async (date, said, message) => {
  const { send } = await withPlan()
  const answer = await send('', `Code;Rate;From\n49;0.1;${date}\n`, { ...dated, ...said })
  expect(answer.body).toMatchObject({
    details: [{ path: 'lines.2.effective_from', message: expect.stringContaining(message) }],
  })
})

test.each(['D DD M YY', 'D MMM M YY', 'DD.MM.YYYY YY', 'DD.DD.YYYY M'])(
  'a date format that names a part twice (%s) is refused',
  async (date_format) => {
    const { send, call } = await withPlan()
    const answer = await send('', 'Code;Rate;From\n49;0.1;1\n', { ...dated, date_format })
    expect(answer.body).toMatchObject({
      statusCode: 400,
      details: [{ path: expect.stringContaining('date_format') }],
    })
    const [{ id } = { id: 0 }] = (await call('GET', '/rate-plans')).data<{ id: number }[]>()
    const kept = await call('PATCH', `/rate-plans/${id}`, {
      deck_mapping: { ...dated, date_format },
    })
    expect(kept.status).toBe(400)
  },
)

test('a description that ends in, or has, half of a character is kept as it is compared', async () => {
  const { send, rates } = await withPlan()
  const long = `${'x'.repeat(199)}\u{1f600}y`
  const decks = [
    `Code;Rate;Name\n49;0.1;${long}\n`,
    workbook([
      ['Code', 'Rate', 'Name'],
      ['49', '0.1', 'a_xD800_b_x0000_c'],
    ]),
  ]
  const shown = ['x'.repeat(199), 'a\ufffdb c']
  for (const [at, deck] of decks.entries()) {
    const { id } = (await send('', deck, described)).data<{ id: number }>()
    expect(await rates()).toMatchObject([{ description: shown[at] }])
    const again = (await send('/diff', deck, described)).data<{ changes: object }>()
    expect(again.changes).toMatchObject({ same: 1, changed: 0 })
    expect((await send(`/${id}/undo`, '')).status).toBe(200)
    expect(await rates()).toEqual([])
  }
})

test.each(['5', '"', 'e', '€', '.'])(
  'a line sep=%s does not make a sign of numbers or texts a separator',
  async (sign) => {
    const { send, rates } = await withPlan()
    const lines = [`sep=${sign}`, `Code${sign}Rate`, `49${sign}0.1`]
    expect((await send('', lines.join('\n'), code)).status).toBe(400)
    expect(await rates()).toEqual([])
  },
)

// ---- workbooks that are made to do harm --------------------------------------------------

const main = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main'
const relations = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
const packages = 'http://schemas.openxmlformats.org/package/2006/relationships'

const bookOf = (rows: string, path = 'worksheets/sheet1.xml') =>
  archive([
    {
      name: 'xl/workbook.xml',
      text: `<workbook xmlns="${main}" xmlns:r="${relations}"><sheets>
        <sheet name="R" sheetId="1" r:id="rId1"/></sheets></workbook>`,
    },
    {
      name: 'xl/_rels/workbook.xml.rels',
      text: `<Relationships xmlns="${packages}"><Relationship Id="rId1"
        Type="${relations}/worksheet" Target="${path}"/></Relationships>`,
    },
    {
      name: `xl/${path}`,
      text: `<worksheet xmlns="${main}"><sheetData>${rows}</sheetData></worksheet>`,
    },
  ])

const firstRow = '<row r="1"><c r="A1" t="inlineStr"><is><t>Code</t></is></c></row>'
const far = (row: string, cell: string) => `${firstRow}<row ${row}><c ${cell}><v>1</v></c></row>`

/** The sizes that the directory of an archive says are not those of its texts. */
function claiming(book: Buffer, size: number): Buffer {
  for (let at = book.indexOf('PK\u0001\u0002'); at !== -1; at = book.indexOf('PK\u0001\u0002', at))
    at = book.writeUInt32LE(size, at + 24)
  return book
}

const tooFar = 'has more than 100000 rows'

test.each([
  ['single quotation marks', bookOf(far("r='200000'", "r='A200000'")), tooFar],
  ['a number with an exponent', bookOf(far('r="2e5"', 'r="A2e5"')), 'is damaged'],
  ['an entity', bookOf(far('r="&#50;00000"', 'r="A&#50;00000"')), 'is damaged'],
  ['a sheet elsewhere', bookOf(far('r="200000"', 'r="A200000"'), 'data/one.xml'), tooFar],
  ['rows without numbers', bookOf('<row/>'.repeat(150_000)), tooFar],
  ['a bracket in a text', bookOf(far('x=">" r="200000"', 'x=">" r="A200000"')), 'is damaged'],
  ['two places', bookOf(far('x:r="2" r="200000"', 'x:r="A2" r="A200000"')), 'is damaged'],
  ['a very wide row', bookOf("<row r='1'><c r='ZZZZZ1'><v>1</v></c></row>"), 'is damaged'],
  ['texts of 3 GB each', claiming(bookOf(firstRow), 3_000_000_000), 'is damaged'],
])('a workbook with %s is refused before it takes memory', async (_, deck, message) => {
  const { send } = await withPlan()
  const started = performance.now()
  const answer = await send('', deck, code)
  expect(performance.now() - started).toBeLessThan(5_000)
  expect(answer.body).toMatchObject({ statusCode: 400, error: expect.stringContaining(message) })
})

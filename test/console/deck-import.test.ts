/** The deck of a carrier in the console: uploaded, mapped, looked at, compared, imported, undone. */
import { expect, onTestFinished, test } from 'vitest'
import { formsOf, openBrowser, openConsole, row } from '../support/console-browser.ts'
import { admin } from '../support/console-rig.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually, patientInstances } from '../support/waiting.ts'

const deck = [
  'Price list of the West',
  'Ziel;Vorwahl;Preis/Min;Mobil ab',
  'Deutschland;+49;0,0090;',
  'UK Mobile;447-449;0,0250;',
  ';Average;0,0170;',
].join('\n')

const seed = {
  rate_plans: [{ name: 'west', currency: 'EUR' }],
  rates: [
    { rate_plan: 'west', prefix: '49', rate_per_minute: '0.008' },
    { rate_plan: 'west', prefix: '33', rate_per_minute: '0.004' },
  ],
}

test(
  'a deck is mapped, previewed and compared in the console before it is imported, and undone there',
  { timeout: 180_000 },
  async () => {
    const environment = { ...patientInstances, ADMIN_PASSWORD: admin.password }
    const tollgate = await TollgateProcess.start(seed, environment)
    onTestFinished(() => tollgate.stop())
    const browser = await openBrowser()
    onTestFinished(() => browser.close())
    const { page, complaints, signIn, inaccessible } = await openConsole(browser, tollgate)
    await signIn(admin.username, admin.password)
    const { dialog, field, choice, confirm } = formsOf(page)
    await page.getByRole('link', { name: 'Rate plans', exact: true }).click()
    await page.getByRole('link', { name: 'west', exact: true }).click()
    await page.getByRole('button', { name: 'Import deck' }).click()
    await dialog
      .getByLabel('File')
      .setInputFiles({ name: 'west.csv', mimeType: 'text/csv', buffer: Buffer.from(deck) })
    await confirm('Preview')
    await dialog.getByText('Check the proposed columns').waitFor()
    await row(page, 'UK Mobile | 447-449').getByText('449: 0.025; 0/1 s').waitFor()
    await row(page, 'Average').getByText('is a line of totals or averages').waitFor()
    expect(await choice('Prefix').inputValue()).toBe('2')
    expect(await inaccessible()).toEqual([])

    await confirm('Compare')
    const refusal = '1 line is not valid. Line 5: is a line of totals or averages'
    await dialog.getByText(refusal).waitFor()
    await dialog.getByText('or name it in “Lines to leave out”').last().waitFor()
    await dialog.getByText('How the cells are meant').click()
    await field('Lines to leave out').fill('5')
    await choice('Prefixes of the plan that the deck does not have').selectOption('end')
    await confirm('Compare')
    await dialog.getByText('3 new, 1 dearer, 0 cheaper').waitFor()
    await row(page, '12.5').getByText('0.009').waitFor()
    await dialog.getByText("1 prefix becomes dearer, or blocked, with less than 7 days'").waitFor()
    expect(tollgate.query('SELECT id FROM rate')).toHaveLength(2)

    await confirm('Import')
    await page.getByText('Imported: 3 new rates, 1 changed, 1 removed.').waitFor()
    expect(tollgate.query('SELECT prefix FROM rate ORDER BY prefix')).toHaveLength(4)
    const remembered = () =>
      tollgate.query<{ mapping: string }>('SELECT deck_mapping AS mapping FROM rate_plan')[0]
    await eventually(() => expect(remembered()?.mapping).toContain('"decimal":","'))
    // The fifth line of the next deck is a rate.
    expect(remembered()?.mapping).not.toContain('skip_lines')
    await page.getByRole('button', { name: 'Undo this import' }).click()
    await page.getByText('Undone: 5 rates as before.').waitFor()
    await page.getByText('Imported decks', { exact: true }).click()
    await row(page, 'west.csv').getByText('undone').waitFor()
    expect(await page.getByRole('button', { name: 'Undo west.csv' }).isDisabled()).toBe(true)
    expect(await inaccessible()).toEqual([])
    expect(tollgate.query('SELECT id FROM rate')).toHaveLength(2)
    // The answer that refuses the line of averages is noted by the browser itself.
    expect(complaints.filter((each) => !each.includes('400'))).toEqual([])
  },
)

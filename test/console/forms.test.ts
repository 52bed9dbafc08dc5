/** Forms whose fields depend on each other, and the line on which fields stand. */
import { expect, test } from 'vitest'
import { formsOf, postFrom, row } from '../support/console-browser.ts'
import { shareConsole } from '../support/console-rig.ts'

const { signedIn } = shareConsole()

test('the fields of the simulator and its button stand on one line, none over another', async () => {
  const { page } = await signedIn({ path: '/console/simulator' })
  const names = ['From', 'To', 'Source', 'Call-ID', 'At the rates of']
  for (const name of names) await page.getByLabel(name, { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Simulate' }).waitFor()
  // At one moment: what is above them may still grow.
  const places: { top: number; left: number; right: number }[] = await page.evaluate(
    `[...document.querySelectorAll('.question :is(input, button)')]
      .map((each) => each.getBoundingClientRect())
      .map(({ top, left, right }) => ({ top, left, right }))`,
  )
  expect(places).toHaveLength(names.length + 1)
  const tops = places.map(({ top }) => Math.round(top))
  expect(Math.max(...tops) - Math.min(...tops)).toBeLessThanOrEqual(4)
  for (const [index, { left }] of places.entries())
    expect(left).toBeGreaterThan(places[index - 1]?.right ?? 0)
})

test('an alert rule gets quiet hours, and loses them when their fields are emptied', async () => {
  const { page } = await signedIn({ path: '/console/alert-rules' })
  const stored = async () =>
    page.evaluate<unknown>(
      `fetch('/api/v1/alert-rules').then((answer) => answer.json()).then(({ data }) =>
        data.find(({ name }) => name === 'nights').quiet_hours)`,
    )
  const channel = { name: 'On call', kind: 'email', to: ['noc@example.com'] }
  expect(await postFrom(page, '/alert-channels', channel)).toBe(201)
  const { dialog, field, confirm, open } = formsOf(page)
  await open('Alert rules', 'New alert rule')
  await field('Name').fill('nights')
  await dialog.getByRole('combobox', { name: /^Looks at/ }).selectOption('carrier_down')
  await dialog.getByRole('textbox', { name: /^Channels/ }).fill('On call')
  await confirm('Create')
  await row(page, 'nights').waitFor()
  expect(await stored()).toBe(null)

  const change = async (values: Readonly<Record<string, string>>): Promise<void> => {
    await row(page, 'nights')
      .getByRole('button', { name: /^Change/ })
      .click()
    await dialog.getByText('More settings').click()
    for (const [name, value] of Object.entries(values))
      await dialog.getByRole('textbox', { name }).fill(value)
    await confirm('Save')
    await dialog.waitFor({ state: 'detached' })
  }
  const zone = 'Time zone of the quiet hours'
  await change({ 'Quiet from': '22:00', 'Quiet until': '07:00', [zone]: 'Europe/Berlin' })
  expect(await stored()).toMatchObject({ from: '22:00', to: '07:00', time_zone: 'Europe/Berlin' })
  await change({ 'Quiet from': '', 'Quiet until': '', [zone]: '' })
  expect(await stored()).toBe(null)
})

/** Alerts in the console: a channel that is tested, a rule, and the log. */
import { expect, test } from 'vitest'
import { httpReceiver } from '../support/alert-receivers.ts'
import { formsOf, row } from '../support/console-browser.ts'
import { shareConsole } from '../support/console-rig.ts'

const { signedIn } = shareConsole({ WEBHOOK_PRIVATE_TARGETS: 'allow' })

test('a person makes a channel, tests it, makes a rule for it, and sees the log', async () => {
  const receiver = await httpReceiver()
  const { page, complaints, inaccessible } = await signedIn()
  const { open, field, confirm } = formsOf(page)
  await open('Alert channels', 'New alert channel')
  await field('Name').fill('On call')
  await page.locator('select[name="kind"]').selectOption('slack')
  await field('Secret').fill(`${receiver.url}/services/x`)
  await confirm('Create')
  await row(page, 'On call').getByRole('button', { name: /^Test/ }).click()
  await confirm('Send')
  await page.getByText('The test was delivered.').waitFor()
  expect(receiver.posts).toHaveLength(1)
  expect(await inaccessible()).toEqual([])
  await open('Alert rules', 'New alert rule')
  await field('Name').fill('Balances')
  await page.locator('select[name="on"]').selectOption('balance_below')
  await field('Limit').fill('5.5')
  await field('Channels').fill('On call')
  await confirm('Create')
  await row(page, 'Balances').getByText('low balance').waitFor()
  await row(page, 'Balances').getByText('5.5').waitFor()
  await page.getByRole('link', { name: 'Alerts', exact: true }).click()
  await page.getByText('There is no alert.').waitFor()
  expect(await inaccessible()).toEqual([])
  expect(complaints).toEqual([])
  await receiver.close()
})

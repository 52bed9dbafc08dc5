/** Periods of a rate plan, and past calls that are priced anew, in the console. */
import type { Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { formsOf, row } from '../support/console-browser.ts'
import { placeCall, shareConsole } from '../support/console-rig.ts'
import { eventually } from '../support/waiting.ts'

const { rig } = shareConsole()
let page: Page
beforeAll(() => {
  page = rig().console.page
})

const openPlan = async (name: string): Promise<void> => {
  await page.getByRole('link', { name: 'Rate plans', exact: true }).click()
  await page.getByRole('link', { name, exact: true }).click()
  await page.getByRole('heading', { level: 1, name }).waitFor()
}

test('periods, holidays and loss protection of a plan are set in its form, and a rate takes one', async () => {
  const { dialog, field, choice, confirm, open } = formsOf(page)
  const period = (number: number) =>
    dialog.getByRole('group', { name: `period ${number}`, exact: true })
  await open('Rate plans', 'New rate plan')
  await field('Name').fill('day and night')
  await dialog.getByText('More settings').click()
  await field('Time zone').fill('Europe/Berlin')
  await choice('Calls that leave too little').selectOption('are refused')
  await field('Least margin').fill('5%')
  await dialog.getByRole('button', { name: 'Add a period' }).click()
  await period(1).getByRole('textbox', { name: 'Name' }).fill('night')
  for (const day of ['Monday', 'Friday']) await period(1).getByLabel(day).check()
  await period(1).getByRole('textbox', { name: 'From' }).fill('18:00')
  await period(1).getByRole('textbox', { name: 'Until' }).fill('08:00')
  await dialog.getByRole('button', { name: 'Add a period' }).click()
  await period(2).getByRole('textbox', { name: 'Name' }).fill('night')
  await field('Holidays').fill('12-25')
  await choice('A period begins during a call').selectOption('the new price from then on')
  await confirm('Create')
  // A period without a day is refused beside its days.
  await period(2)
    .getByText(/expected array|required/i)
    .waitFor()
  await period(2).getByLabel('holidays').check()
  expect(await rig().console.inaccessible()).toEqual([])
  await confirm('Create')
  await page.getByRole('link', { name: 'day and night', exact: true }).waitFor()
  const stored = () =>
    rig().tollgate.query<Record<string, string | null>>(
      `SELECT periods, holidays, price_change, loss_protection, min_margin, time_zone
        FROM rate_plan WHERE name = 'day and night'`,
    )[0]
  const night = { name: 'night', days: ['mon', 'fri'], from: '18:00', to: '08:00' }
  const holidays = { name: 'night', days: ['holiday'], from: '00:00', to: '24:00' }
  expect(stored()).toMatchObject({ price_change: 'change', time_zone: 'Europe/Berlin' })
  expect(JSON.parse(String(stored()?.['periods']))).toEqual([night, holidays])
  expect(JSON.parse(String(stored()?.['holidays']))).toEqual(['12-25'])

  await page.getByRole('button', { name: 'Change day and night' }).click()
  await dialog.getByText('More settings').click()
  expect(await period(1).getByLabel('Friday').isChecked()).toBe(true)
  expect(await period(1).getByLabel('Sunday').isChecked()).toBe(false)
  await period(1).getByLabel('Friday').uncheck()
  await dialog.getByRole('button', { name: 'Remove period 2' }).click()
  await choice('Calls that leave too little').selectOption('as the next rules say')
  await confirm('Save')
  await eventually(() =>
    expect(JSON.parse(String(stored()?.['periods']))).toEqual([{ ...night, days: ['mon'] }]),
  )
  expect(stored()).toMatchObject({ loss_protection: null, min_margin: null })

  await openPlan('day and night')
  await page.getByRole('button', { name: 'New rate' }).click()
  await field('Prefix').fill('49')
  await field('Price of a minute').fill('0.01')
  await dialog.getByText('More settings').click()
  expect(await choice('Only in the period').getByRole('option').allTextContents()).toEqual([
    'otherwise',
    'night',
  ])
  await choice('Only in the period').selectOption('night')
  await confirm('Create')
  await row(page, '0.01').getByText('night').waitFor()

  await openPlan('retail')
  await page.getByRole('button', { name: 'New rate' }).click()
  await dialog.getByText('More settings').click()
  expect(await choice('Only in the period').count()).toBe(0)
  await confirm('Cancel')
})

test('calls are re-rated on the page of their plan after a preview, and an undo gives all back', async () => {
  const { tollgate } = rig()
  const caller = await placeCall(rig())
  await page.goto('/console/calls')
  const button = row(page, '18005551212').getByRole('button', { name: /^Hang up/ })
  await button.click()
  const { dialog, field, choice, confirm } = formsOf(page)
  await confirm('Hang up')
  caller.reply(await caller.next('BYE'), 200)
  const costs = () =>
    tollgate.query<{ cost: number }>('SELECT cost_micros AS cost FROM cdr WHERE cost_micros > 0')
  await eventually(() => expect(costs()).toHaveLength(1))
  const [charged] = costs()
  const balance = tollgate.wallet('paying').balance

  await openPlan('retail')
  await page.getByRole('button', { name: /^Change 1/ }).click()
  await field('Price of a minute').fill('0.30')
  await confirm('Save')
  await row(page, '0.3').waitFor()
  await page.getByRole('button', { name: 'Re-rate calls' }).click()
  await dialog.getByLabel('Calls that began since').fill('2020-01-01T00:00')
  await dialog.getByLabel('and before').fill('2100-01-01T00:00')
  expect(await choice('Only calls of the carrier').count()).toBe(0)
  await confirm('Preview')
  await dialog.getByText('1 call of 1 changes.').waitFor()
  await dialog.getByText(/a difference of -0\.\d+ USD/).waitFor()
  await row(page, 'paying').waitFor()
  await dialog.getByText('Calls that change most').first().click()
  await dialog.getByRole('row').filter({ hasText: '18005551212' }).waitFor()
  expect(await rig().console.inaccessible()).toEqual([])
  expect(costs()).toEqual([charged])

  // Another order has a preview of its own.
  await dialog.getByLabel('Only calls to').fill('44')
  await confirm('Preview')
  await dialog.getByText('No call changes, of 0.').waitFor()
  await dialog.getByLabel('Only calls to').fill('')
  await confirm('Preview')
  await dialog.getByText('1 call of 1 changes.').waitFor()
  await confirm('Re-rate')
  await row(page, 'what customers paid').getByText('done').waitFor()
  expect(costs()).toEqual([{ cost: Number(charged?.cost) / 2 }])
  await eventually(() =>
    expect(tollgate.wallet('paying').balance).toBe(balance + Number(charged?.cost) / 2),
  )

  await page.getByRole('button', { name: 'Undo re-rating 1' }).click()
  await dialog.getByRole('row').filter({ hasText: 'paying' }).waitFor()
  expect(await rig().console.inaccessible()).toEqual([])
  await confirm('Undo')
  await row(page, 'what customers paid').getByText('undone').waitFor()
  expect(costs()).toEqual([charged])
  expect(tollgate.wallet('paying').balance).toBe(balance)
  expect(await page.getByRole('button', { name: 'Undo re-rating 1' }).isDisabled()).toBe(true)
})

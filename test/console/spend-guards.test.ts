/** Spend guards, as operators set and remove them on the console. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openBrowser } from '../support/console-browser.ts'
import { startConsoleRig } from '../support/console-rig.ts'

let browser: Browser
beforeAll(async () => {
  browser = await openBrowser()
})
afterAll(() => browser.close())

const row = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text })
const dialog = (page: Page) => page.getByRole('dialog')

test(
  'an operator caps calls to a prefix for some hours, is told what does not fit, and removes the guard',
  { timeout: 180_000 },
  async () => {
    const { console: opened } = await startConsoleRig(browser)
    const { page, complaints, inaccessible } = opened
    const isClean = async () => expect(await inaccessible()).toEqual([])
    await page.getByRole('link', { name: 'Spend guards' }).click()
    await page.getByText('No guard is set.').waitFor()
    await isClean()

    await page.getByRole('button', { name: 'Set a guard' }).click()
    await dialog(page).getByLabel('Its id or name').fill('paying')
    await dialog(page).getByLabel('First digits').fill('+1 900')
    await dialog(page).getByLabel('What happens').selectOption('cap')
    await dialog(page).getByLabel('Reason').fill('many calls to premium numbers')
    await isClean()
    // A cap without an amount.
    await dialog(page).getByRole('button', { name: 'Set' }).click()
    await dialog(page).getByRole('alert').waitFor()
    await dialog(page).getByLabel('Amount of a cap').fill('5.25')
    await dialog(page).getByRole('button', { name: 'Set' }).click()
    const guard = row(page, 'customer paying')
    await guard.getByText('1900…').waitFor()
    await guard.getByText(/^at most 5\.25\d* USD in all$/).waitFor()
    await guard.getByText('many calls to premium numbers').waitFor()
    await isClean()

    await guard.getByRole('button', { name: /^Remove/ }).click()
    await dialog(page).getByLabel('Reason').fill('it was no fraud')
    await isClean()
    await dialog(page).getByRole('button', { name: 'Remove' }).click()
    await page.getByText('No guard is set.').waitFor()
    await page.getByRole('link', { name: 'Changes' }).click()
    await row(page, 'it was no fraud').getByText('made').waitFor()
    expect(complaints.filter((each) => !each.includes('400'))).toEqual([])
  },
)

/**
 * Every question, form and box of the console as axe sees it (WCAG 2.2 AA), in both colours, on a
 * desk and on a phone: none is wider than its window, has a text that is cut or lies under another, or
 * stands beside the middle.
 */
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { chooseScreen, formsOf, hrefs, row, type ConsolePage } from '../support/console-browser.ts'
import { admin, placeCall, shareConsole } from '../support/console-rig.ts'
import { eachDialog, openDialogs, unfold } from '../support/each-dialog.ts'
import { makeLivedIn } from '../support/lived-in.ts'

const { rig, open } = shareConsole()

const wide = 1_280
const narrow = 390

/** Nothing in the box is out of its sight at the right. */
const overflow = (part: string): string => `(() => {
  const box = [...document.querySelectorAll(${JSON.stringify(part)})].at(-1)
  const { left, right } = box.getBoundingClientRect()
  return box.scrollWidth > box.clientWidth + 1 || left < 0 || right > innerWidth
})()`

/** Names and hints that end in the middle of a word. */
const cutTexts = (part: string): string => `[...document.querySelectorAll(${JSON.stringify(part)})]
  .flatMap((box) => [...box.querySelectorAll('button, label > span, small, h2')])
  .filter((each) => each.clientWidth > 0 && each.scrollWidth > each.clientWidth + 1)
  .map((each) => each.textContent)`

/** Finds parts of a field that lie over each other: its name, its hint, the button below. */
const covered = (part: string): string => `[...document.querySelectorAll(${JSON.stringify(part)})]
  .flatMap((box) => [...box.querySelectorAll('.fields > div')])
  .flatMap((field) => {
    const parts = [...field.children].filter((each) => each.getClientRects().length > 0)
    const isOver = (one, other) => {
      const [a, b] = [one.getBoundingClientRect(), other.getBoundingClientRect()]
      return a.bottom > b.top + 1 && b.bottom > a.top + 1 && a.right > b.left && b.right > a.left
    }
    return parts.flatMap((one, at) =>
      parts.slice(at + 1).filter((other) => isOver(one, other)).map((other) => other.textContent))
  })`

/** Says how far a question stands from the middle of the window, above or below it. */
const offMiddle = `Math.max(0, ...[...document.querySelectorAll('dialog[open]:not(.palette)')]
  .map((box) => box.getBoundingClientRect())
  .map(({ top, bottom }) => Math.round(Math.abs(top - (innerHeight - bottom)) / 2)))`

async function judge(opened: ConsolePage, name: string, part = openDialogs): Promise<void> {
  const { page, inaccessible, tooPale } = opened
  // Its code may be on the way.
  await page.locator(part).first().waitFor()
  expect.soft([name, await inaccessible(part)]).toEqual([name, []])
  expect.soft([name, await tooPale(part)]).toEqual([name, []])
  expect.soft([name, 'wide', await page.evaluate(overflow(part))]).toEqual([name, 'wide', false])
  expect.soft([name, await page.evaluate(cutTexts(part))]).toEqual([name, []])
  expect.soft([name, await page.evaluate(covered(part))]).toEqual([name, []])
  expect.soft([name, await page.evaluate(offMiddle)]).toEqual([name, 0])
}

/** The data of the screen is there. */
async function arrived(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.getByText('Loading …').first().waitFor({ state: 'hidden' })
}

let isFilled = false

async function signedIn(width: number): Promise<ConsolePage> {
  const colorScheme = width === wide ? 'light' : 'dark'
  const opened = await open({ colorScheme, width })
  // A session of its own: a user may ask 600 times a minute.
  await opened.signIn(admin.username, admin.password)
  if (!isFilled) {
    await placeCall(rig())
    await makeLivedIn(opened.page)
    isFilled = true
  }
  return opened
}

const patience = { timeout: 300_000 }

for (const width of [wide, narrow])
  test(`each button of each screen opens what all can use at ${width} px`, patience, async () => {
    const opened = await signedIn(width)
    const { page, complaints } = opened
    const names = new Set<string>()
    const judgeAll = async (path: string): Promise<void> => {
      await arrived(page)
      await eachDialog(page, async ({ name }) => {
        names.add(name)
        await judge(opened, `${path}: ${name}`)
      })
    }
    const paths = await hrefs(page, 'nav a[href^="/console/"]')
    const items: string[] = []
    for (const path of paths) {
      await chooseScreen(page, path)
      await judgeAll(path)
      items.push(...(await hrefs(page, `main a[href^="${path}/"]`)).slice(0, 1))
    }
    for (const path of items) {
      await page.goto(new URL(path, page.url()).href)
      await judgeAll(path)
    }
    expect([...names].toSorted()).toEqual(
      expect.arrayContaining([
        '+ Filter',
        'Change',
        'Delete',
        'Hang up',
        'Import deck',
        'New alert rule',
        'New carrier',
        'New customer',
        'New outbound route',
        'New rate plan',
        'Set up',
        'Top up',
        'Views',
      ]),
    )
    expect(complaints).toEqual([])
  })

/** Each stands over a page, or comes in its place, and says how one comes there. */
const others: Readonly<Record<string, (opened: ConsolePage) => Promise<string | undefined>>> = {
  'the palette, with recent things': async ({ page }) => {
    await page.keyboard.press('Control+k')
    await page.getByRole('option').first().waitFor()
    return 'dialog[open]'
  },
  'the palette, with what is found': async ({ page }) => {
    await page.keyboard.press('/')
    await page.getByRole('combobox', { name: 'Find anything' }).fill('as')
    await page
      .getByRole('option', { name: /Hotel Astoria/ })
      .first()
      .waitFor()
    return 'dialog[open]'
  },
  'the keys': async ({ page }) => {
    await page.keyboard.press('?')
    return 'dialog[open]'
  },
  'the menu of the user': async ({ page }) => {
    await page.getByRole('button', { name: 'Account' }).click()
    return '.account'
  },
  'a new password': async ({ page }) => {
    await page.getByRole('button', { name: 'Account' }).click()
    await page.getByRole('button', { name: 'Change password' }).click()
    return openDialogs
  },
  'the menu of the screens': async ({ page }) => {
    const button = page.getByRole('button', { name: 'Menu', exact: true })
    if (await button.isVisible()) await button.click()
    return '#menu'
  },
  'a form that is left, with what was typed': async ({ page }) => {
    await chooseScreen(page, '/console/customers')
    await page.getByRole('button', { name: 'New customer' }).click()
    await formsOf(page).field('Name').fill('somebody')
    await page.keyboard.press('Escape')
    await page.getByRole('alertdialog').waitFor()
    return openDialogs
  },
  'a form with a problem at its field': async ({ page }) => {
    await chooseScreen(page, '/console/tenants')
    await page.getByRole('button', { name: 'New tenant' }).click()
    const { dialog, confirm } = formsOf(page)
    await dialog.getByRole('textbox').first().fill('NOT A SLUG')
    await confirm('Create')
    await dialog.locator('[aria-invalid="true"]').first().waitFor()
    return openDialogs
  },
  'what a form refers to, made over it': async ({ page }) => {
    await chooseScreen(page, '/console/phones')
    await page.getByRole('button', { name: 'New extension' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'New tenant' }).click()
    await page.getByRole('dialog').getByRole('heading', { name: 'New tenant' }).waitFor()
    return openDialogs
  },
  'many rows that are chosen': async ({ page }) => {
    await chooseCustomers(page)
    return undefined
  },
  'many rows that are deleted': async ({ page }) => {
    await chooseCustomers(page)
    await selected(page).getByRole('button', { name: 'Delete' }).click()
    await page
      .getByRole('dialog')
      .getByText(/^Delete \d+ customers\?/)
      .waitFor()
    return openDialogs
  },
  'many rows that are moved': async ({ page }) => {
    await chooseCustomers(page)
    await selected(page).getByRole('button', { name: 'Move to plan' }).click()
    await page.getByRole('dialog').getByLabel('Rate plan').waitFor()
    return openDialogs
  },
  'a change that somebody else has made, too': async ({ page }) => {
    await page.goto(new URL('/console/customers/1', page.url()).href)
    await page.getByRole('button', { name: 'Change', exact: true }).click()
    const { dialog, field, confirm } = formsOf(page)
    await field('Name').fill('paying, as I call it')
    const other = `paying, said ${page.viewportSize()?.width}`
    expect(await patched(page, '/customers/1', { name: other })).toBe(200)
    await confirm('Save')
    await dialog.getByText('Somebody has changed this').waitFor()
    return openDialogs
  },
  'the deck of a carrier, looked at and compared': async ({ page }) => {
    await chooseScreen(page, '/console/rate-plans')
    await page.locator('main a[href^="/console/rate-plans/"]').first().click()
    await page.getByRole('button', { name: 'Import deck' }).click()
    const { dialog, confirm } = formsOf(page)
    const file = { name: 'west.csv', mimeType: 'text/csv', buffer: Buffer.from(deck) }
    await dialog.getByLabel('File').setInputFiles(file)
    await confirm('Preview')
    await dialog.getByText('Check the proposed columns').waitFor()
    await page.evaluate(unfold)
    await confirm('Compare')
    await dialog.getByText(/\d+ new, \d+ dearer/).waitFor()
    return openDialogs
  },
  'the key of an authenticator': async ({ page }) => {
    await chooseScreen(page, '/console/account')
    await page.getByRole('button', { name: 'Set up' }).click()
    const { dialog, confirm } = formsOf(page)
    await dialog.getByLabel('Password').fill(admin.password)
    await confirm('Go on')
    await dialog.getByRole('img', { name: 'Picture of the key' }).waitFor()
    return openDialogs
  },
  'a secret that is shown once, and what was done': async ({ page }) => {
    await chooseScreen(page, '/console/keys')
    await page.getByRole('button', { name: 'New key' }).click()
    const { field, confirm } = formsOf(page)
    await field('Name').fill(`of ${page.viewportSize()?.width}`)
    await confirm('Create')
    await page.getByText('shown only now').waitFor()
    await page.locator('.toast').waitFor()
    return undefined
  },
  'the history of findings': async ({ page }) => {
    await chooseScreen(page, '/console/now')
    await page.getByRole('link', { name: 'History of findings' }).click()
    await arrived(page)
    return undefined
  },
}

const selected = (page: Page) => page.getByRole('group', { name: 'Selected customers' })

async function chooseCustomers(page: Page): Promise<void> {
  await chooseScreen(page, '/console/customers')
  await row(page, 'broke').waitFor()
  await page.getByRole('checkbox', { name: 'Select all of Customers' }).click()
  await selected(page)
    .getByText(/selected/)
    .waitFor()
}

const deck = [
  'Destination;Prefix;Price per minute;Increment',
  'USA;1;0.7000;60/60',
  'Germany, mobile;4915-4917;0.0250;1/1',
  'France;33;0.0100;1/1',
].join('\n')

/** Sends a change as another program would. */
const patched = (page: Page, path: string, body: object): Promise<number> =>
  page.evaluate(
    `fetch('/api/v1${path}', { method: 'PATCH', headers: { 'Content-Type': 'application/json' },
      body: ${JSON.stringify(JSON.stringify(body))} }).then(({ status }) => status)`,
  )

for (const width of [wide, narrow])
  test(`what stands over a page can be used by all at ${width} px`, patience, async () => {
    const opened = await signedIn(width)
    const { page } = opened
    for (const [name, comeTo] of Object.entries(others)) {
      // Whatever was open before is not there after a loading.
      await page.goto(new URL('/console/settings', page.url()).href)
      await arrived(page)
      await judge(opened, name, (await comeTo(opened)) ?? 'main, .toasts')
    }
  })

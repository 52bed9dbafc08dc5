/**
 * The console in a browser: Chromium (Debian: chromium) driven by Playwright. What the page
 * complains about, such as a violation of its policy, fails the test that asks for it.
 */
import axe, { type RunOnly } from 'axe-core'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { isOnPostgres } from './on-sqlite.ts'
import type { TollgateProcess } from './tollgate-process.ts'

/** Where Debian has it. */
const executablePath = '/usr/bin/chromium'

/** WCAG 2.2 AA, and what axe calls best practice. */
const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

export const openBrowser = (): Promise<Browser> =>
  chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  })

export interface ConsolePage {
  readonly page: Page
  /** Errors of the page and of its console, and violations of its policy. */
  readonly complaints: readonly string[]
  signIn(username: string, password: string): Promise<void>
  /** One line for each violation that axe finds in the page, or in this part of it. */
  inaccessible(part?: string): Promise<string[]>
  /** The same of contrasts alone, in the colours that the page does not have. */
  tooPale(part?: string): Promise<string[]>
}

/** A screen of the menu, which is behind a button on phones. */
export async function chooseScreen(page: Page, path: string): Promise<void> {
  const button = page.getByRole('button', { name: 'Menu', exact: true })
  if (await button.isVisible()) await button.click()
  await page.locator(`nav a[href="${path}"]`).click()
}

/** A row of the table that has this text. */
export const row = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text })

/** Fills in the dialogs of a page. */
export function formsOf(page: Page) {
  const dialog = page.getByRole('dialog')
  return {
    dialog,
    field: (name: string) => dialog.getByRole('textbox', { name, exact: true }),
    choice: (name: string) => dialog.getByRole('combobox', { name, exact: true }),
    confirm: (name: string) => dialog.getByRole('button', { name, exact: true }).click(),
    open: async (screen: string, action: string): Promise<void> => {
      await page.getByRole('link', { name: screen, exact: true }).click()
      await page.getByRole('button', { name: action }).click()
    },
  }
}

/** Where the links lead that a selector finds. */
export const hrefs = (page: Page, selector: string): Promise<string[]> =>
  page.evaluate(
    `[...document.querySelectorAll(${JSON.stringify(selector)})].map((link) => link.getAttribute('href'))`,
  )

/** A request of the API with the session of a page. Returns the status. */
export const postFrom = (page: Page, path: string, body: object): Promise<number> =>
  page.evaluate(
    `fetch('/api/v1${path}', { method: 'POST', headers: { 'Content-Type': 'application/json' },
      body: ${JSON.stringify(JSON.stringify(body))} }).then(({ status }) => status)`,
  )

interface ConsoleOptions {
  readonly colorScheme?: 'light' | 'dark'
  readonly width?: number
  /** `Asia/Tokyo`; by default that of the machine. */
  readonly timezoneId?: string
  /** That is opened first. */
  readonly path?: string
  /** Cookies of another page: its session. */
  readonly storageState?: Awaited<ReturnType<BrowserContext['storageState']>>
}

export async function openConsole(
  browser: Browser,
  { apiPort }: Pick<TollgateProcess, 'apiPort'>,
  {
    colorScheme = 'light',
    width = 1_280,
    timezoneId,
    path = '/console/calls',
    storageState,
  }: ConsoleOptions = {},
): Promise<ConsolePage> {
  const baseURL = `http://127.0.0.1:${apiPort}`
  const context = await browser.newContext({
    baseURL,
    colorScheme,
    locale: 'en-GB',
    viewport: { width, height: 800 },
    ...(timezoneId !== undefined && { timezoneId }),
    ...(storageState !== undefined && { storageState }),
  })
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => {
    if (message.type() !== 'error' && message.type() !== 'warning') return
    // On a machine that stands still for some seconds, a page takes what it was sent late.
    if (message.text().includes('preloaded using link preload but not used')) return
    complaints.push(`${message.text()} (${message.location().url.replace(baseURL, '')})`)
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  await page.goto(path)
  return {
    page,
    complaints,
    async signIn(username, password) {
      await page.getByLabel('User').fill(username)
      await page.getByLabel('Password').fill(password)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByRole('button', { name: 'Account' }).waitFor()
    },
    inaccessible: (part) => violations(page, part, tags),
    async tooPale(part) {
      await page.emulateMedia({ colorScheme: colorScheme === 'dark' ? 'light' : 'dark' })
      try {
        return await violations(page, part, { type: 'rule', values: ['color-contrast'] })
      } finally {
        await page.emulateMedia({ colorScheme })
      }
    },
  }
}

/** `runOnly`: of axe. */
async function violations(
  page: Page,
  part: string | undefined,
  runOnly: string[] | RunOnly,
): Promise<string[]> {
  // The findings of axe do not depend on the database: it says it in the run on SQLite.
  if (isOnPostgres) return []
  // Through the debugger: the policy of the page allows no foreign script. Once for each
  // loading of the page.
  if (await page.evaluate(`typeof axe === 'undefined'`)) await page.evaluate(axe.source)
  const context = part === undefined ? 'document' : JSON.stringify(part)
  const found = await page.evaluate(
    `axe.run(${context}, { runOnly: ${JSON.stringify(runOnly)} }).then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' | ')))`,
  )
  return found as string[]
}

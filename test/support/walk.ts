/**
 * A person who walks through the console: by the mouse, counting clicks, or by the keyboard alone.
 * Things are found by what stands on the screen. A choice in a list of the browser counts as two
 * clicks: it is opened, and one is chosen.
 */
import type { Locator, Page } from 'playwright-core'

export interface Walked {
  readonly clicks: number
  readonly keys: number
  readonly seconds: number
}

export class Walk {
  readonly page: Page
  #clicks = 0
  #keys = 0
  readonly #now: () => number
  readonly #began: number

  constructor(page: Page, now: () => number = () => performance.now()) {
    this.page = page
    this.#now = now
    this.#began = now()
  }

  get walked(): Walked {
    const seconds = (this.#now() - this.#began) / 1_000
    return { clicks: this.#clicks, keys: this.#keys, seconds }
  }

  async click(target: Locator): Promise<void> {
    this.#clicks += 1
    await target.click()
  }

  async choose(target: Locator, label: string): Promise<void> {
    this.#clicks += 2
    await target.selectOption({ label })
  }

  /** Into the field that has the focus. */
  async type(text: string): Promise<void> {
    this.#keys += text.length
    await this.page.keyboard.type(text)
  }

  async press(key: string): Promise<void> {
    this.#keys += 1
    await this.page.keyboard.press(key)
  }

  /** A field that the mouse has to reach first. */
  async clickAndType(target: Locator, text: string): Promise<void> {
    await this.click(target)
    await this.type(text)
  }

  /** By Tab, as long as it takes, to what is there. */
  async tabTo(target: Locator): Promise<void> {
    await target.waitFor()
    for (let tabs = 0; tabs < MAX_TABS; tabs += 1) {
      if (await target.evaluate(hasFocus)) return
      await this.press('Tab')
    }
    throw new Error(`${String(target)} is not reached by ${MAX_TABS} times Tab`)
  }

  /** Into a field of date and time, whose order of keys is that of the browser's language. */
  async enter(target: Locator, value: string): Promise<void> {
    await this.tabTo(target)
    this.#keys += value.length
    await target.fill(value)
  }

  async tabToAndPress(target: Locator, key = 'Enter'): Promise<void> {
    await this.tabTo(target)
    await this.press(key)
  }

  /** A choice of the browser takes the option whose text is typed. */
  async tabToAndChoose(target: Locator, label: string): Promise<void> {
    await this.tabTo(target)
    await this.type(label)
  }

  /** By the palette, the first that is found. */
  async find(text: string): Promise<void> {
    await this.press('/')
    await this.page.getByRole('combobox', { name: 'Find anything' }).waitFor()
    await this.type(text)
    await this.press('Enter')
  }
}

/** It runs in the page. */
const hasFocus = (element: unknown): boolean =>
  element === (globalThis as { document?: { activeElement?: unknown } }).document?.activeElement

/** More than anybody presses it. */
const MAX_TABS = 80

/** Counts what the mouse does on a page, also on those that are opened later. */
export async function mouseEventsOf(page: Page): Promise<() => Promise<unknown>> {
  const count = `for (const name of ['mousedown', 'mousemove', 'pointerdown', 'wheel'])
    addEventListener(name, () => { window.mouseEvents = (window.mouseEvents ?? 0) + 1 }, true)`
  await page.addInitScript(count)
  await page.evaluate(count)
  return () => page.evaluate('window.mouseEvents ?? 0')
}

/**
 * Each question, form and box that the buttons of a page open, one after the other, as a person
 * opens them.
 */
import type { Locator, Page } from 'playwright-core'

interface OpenDialog {
  /** The text of its button: `New customer`. */
  readonly name: string
  readonly at: Locator
}

/** Over the page: a question, a form, or a box below its button. */
export const openDialogs = ':is(dialog[open], [popover].box:popover-open)'

/** These open nothing: their work is done at once. */
const atOnce = [
  'As usual',
  'Clear filters',
  'Copy',
  'Load more',
  'Newer',
  'Next',
  'Older',
  'Previous',
  'Refresh',
  'Reopen',
  'Undo this import',
  '✕',
]

const buttons = 'main button:not(th *):not([disabled]):not([aria-pressed])'

/** All that is folded away in what is open. */
export const unfold = `document.querySelectorAll(':is(${openDialogs}) details')
  .forEach((each) => (each.open = true))`

/**
 * Opens each of them, those of rows once for all rows, and all that is folded away in it; calls
 * `look`, and closes it as Escape does. A button that opens nothing is an error.
 */
export async function eachDialog(
  page: Page,
  look: (dialog: OpenDialog) => Promise<void>,
): Promise<void> {
  for (const name of await openersOf(page)) {
    await withText(page, name).first().click()
    const at = page.locator(openDialogs).last()
    await at.waitFor({ timeout: 10_000 }).catch(() => {
      throw new Error(`the button "${name}" of ${page.url()} opens nothing`)
    })
    await at.getByText('Loading …').first().waitFor({ state: 'hidden' })
    await page.evaluate(unfold)
    await look({ name, at })
    await page.keyboard.press('Escape')
    await page.locator(openDialogs).first().waitFor({ state: 'hidden' })
  }
}

async function openersOf(page: Page): Promise<readonly string[]> {
  const texts = await page.evaluate<readonly string[]>(
    `[...document.querySelectorAll(${JSON.stringify(buttons)})]
      .filter((each) => each.checkVisibility({ visibilityProperty: true }))
      .filter((each) => each.form === null || each.type === 'button' || each.popoverTargetElement)
      .map((each) => each.textContent.trim())`,
  )
  return [...new Set(texts)].filter((text) => text !== '' && !atOnce.includes(text))
}

const withText = (page: Page, text: string): Locator =>
  page.locator(`${buttons}:visible`).filter({ hasText: new RegExp(`^\\s*${escaped(text)}\\s*$`) })

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

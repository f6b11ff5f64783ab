import { styleText } from 'node:util'

// Colours only on a terminal, and never with NO_COLOR (https://no-color.org).
const hasColours = process.stdout.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== 'dumb'
const paint = (colour, text) => (hasColours ? styleText(colour, text) : text)

const began = performance.now()

export const show = {
  title: (text) => console.log(`\n${paint('bold', text)}`),
  heading: (text, why) => console.log(`\n${paint(['bold', 'cyan'], text)}\n${paint('gray', `   ${why}`)}`),
  good: (text) => line('green', '✓', text),
  bad: (text) => line('red', '✗', text),
  again: (text) => line('yellow', '↻', text),
  note: (text) => line('gray', '·', text),
  end: (text, ok = true) => console.log(`\n${paint(['bold', ok ? 'green' : 'red'], text)}\n`),
}

function line(colour, mark, text) {
  const seconds = ((performance.now() - began) / 1000).toFixed(1).padStart(6)
  console.log(`${paint('gray', `${seconds} s`)}  ${paint(colour, mark)} ${text}`)
}

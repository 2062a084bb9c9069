/** A list of tasks as a list. */

import { Icon, type IconName } from "@/design/icon";
import type { Todo, TodoStatus } from "./tool-todos";
import "./todo-list.css";

const MARKS: Record<TodoStatus, { icon: IconName; label: string }> = {
  pending: { icon: "open", label: "to do" },
  doing: { icon: "doing", label: "in progress" },
  done: { icon: "checked", label: "done" },
  dropped: { icon: "cross", label: "dropped" },
};

export function TodoList({ todos }: { todos: Todo[] }) {
  return (
    <ul className="todos" aria-label="Tasks">
      {todos.map((todo, index) => (
        <li key={index} className={`todo todo-${todo.status}`}>
          <Icon name={MARKS[todo.status].icon} size={14} />
          <span className="visually-hidden">{MARKS[todo.status].label}:</span>
          <span className="todo-text">{todo.text}</span>
        </li>
      ))}
    </ul>
  );
}
